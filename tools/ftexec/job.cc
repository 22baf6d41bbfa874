#include "tools/ftexec/job.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "runtime/base/output_check.h"
#include "runtime/base/status_macros.h"
#include "runtime/data/data_identity.h"
#include "runtime/executor/save_weights.h"
#include "runtime/metrics/event_file.h"
#include "runtime/metrics/trace.h"
#include "runtime/plan/inputs.h"
#include "runtime/plan/target.h"
#include "runtime/plan/verify_bound.h"
#include "runtime/plan/verify_plan.h"
#include "tools/ftexec/initial_files.h"
#include "tools/ftexec/outputs.h"
#include "tools/ftexec/rank_log.h"

namespace ft {
namespace {

int CoresOfProcess() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return CPU_COUNT(&set);
}

// The first number of OpenMP's list (one for each level of nesting); 0: not set.
absl::StatusOr<int> ThreadsOfEnvironment() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  if (text == nullptr || *text == '\0') return 0;
  int first = 0;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    int threads = 0;
    if (!absl::SimpleAtoi(part, &threads) || threads < 1 || threads > kMaxThreads) {
      return absl::InvalidArgumentError(absl::StrCat("environment variable OMP_NUM_THREADS='", text,
                                                     "' is no number of threads from 1 to ", kMaxThreads,
                                                     ", nor a list of them: set it to one, or unset it"));
    }
    if (first == 0) first = threads;
  }
  return first;
}

absl::StatusOr<int> ChooseThreads(const Flags& flags, int cores, int local_ranks) {
  FT_ASSIGN_OR_RETURN(const int wanted, ThreadsOfEnvironment());
  if (flags.threads > 0) return flags.threads;
  return wanted > 0 ? wanted : std::max(1, cores / std::max(1, local_ranks));
}

// A run of hours must not fail at its end because something cannot be written: whatever this rank is going to
// write is tried before it meets the others.
absl::Status TryOutputs(const Flags& flags, Job& job) {
  constexpr uint64_t kSome = 4096;  // of files whose size nobody knows yet
  if (job.rank() == 0) FT_RETURN_IF_ERROR(CheckOutputs(flags));
  if (job.rank() == 0 && !flags.save_weights.empty()) {
    FT_ASSIGN_OR_RETURN(const uint64_t bytes, BytesOfWeights(job.plan()));
    FT_RETURN_IF_ERROR(CheckAtomicOutput(flags.save_weights, bytes));
  }
  if (job.rank() == 0 && !flags.save_hf.empty())
    FT_RETURN_IF_ERROR(CheckFolderOutput(job.plan(), FolderRequestOf(flags)));
  if (job.rank() == 0 && !flags.metrics.empty()) FT_RETURN_IF_ERROR(CheckInPlaceOutput(flags.metrics, kSome));
  if (job.rank() == 0 && !flags.trace.empty()) FT_RETURN_IF_ERROR(CheckAtomicOutput(flags.trace, kSome));
  if (job.world_size() > 1 && !flags.trace.empty())
    FT_RETURN_IF_ERROR(CheckAtomicOutput(TracePartPath(flags.trace, job.rank()), kSome));
  if (flags.log_dir.empty()) return absl::OkStatus();
  FT_RETURN_IF_ERROR(RankLog::Check(flags.log_dir, job.rank(), kSome));
  return job.rank() == 0 ? EventFile::Check(flags.log_dir, kSome) : absl::OkStatus();
}

const char* OnOff(bool on) { return on ? "on" : "off"; }

const char* Name(DeviceKind device) {
  switch (device) {
    case DeviceKind::kCpu:
      return "cpu";
    case DeviceKind::kCuda:
      return "cuda";
    case DeviceKind::kNull:
      return "null";
  }
  return "";
}

const char* Name(cuda::AttentionChoice attention) {
  switch (attention) {
    case cuda::AttentionChoice::kAuto:
      return "auto";
    case cuda::AttentionChoice::kCudnn:
      return "cudnn";
    case cuda::AttentionChoice::kOwn:
      return "own";
  }
  return "";
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenData(const Flags& flags, const std::vector<DataEntry>& entries,
                                                  const proto::Plan& plan) {
  return OpenDataset(entries, DataInputsOf(plan), flags.data_format);
}

// Where rows cannot be filled up, what does not fill a batch of all ranks is left out.
absl::Status CheckEvaluated(const Flags& flags, const Job& job) {
  const int64_t per_batch = static_cast<int64_t>(job.plan().batch()) * job.world_size();
  if (CanFillUpRows(job.plan()) || job.eval_data->num_sequences() >= per_batch) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flags.evaluate ? "--data" : "--eval-data", " has ", job.eval_data->num_sequences(), " ",
                   std::string(ExampleWord(job.plan())), ", less than a batch of all ranks, ", per_batch,
                   ": of this model, whose loss or outputs are means over "
                   "whole batches, only such batches are evaluated"));
}

absl::Status Settle(const Flags& flags, Job& job) {
  FT_ASSIGN_OR_RETURN(const TrainingSettings of_plan, TrainingSettingsOf(job.plan()));
  const TrainingSettings run = TrainingSettings::Merge(flags.run, of_plan);
  const int64_t per_step = job.SequencesPerStep();
  job.seed = run.seed.value_or(job.seed);
  if (!flags.trains()) return absl::OkStatus();
  job.steps_follow_data = !run.steps.has_value();
  job.shuffle = flags.shuffle.value_or(true);
  job.steps = run.steps.value_or((job.data->num_sequences() + per_step - 1) / per_step);
  job.max_bad_steps = run.max_bad_steps.value_or(job.max_bad_steps);
  absl::StatusOr<LrSchedule> lr = run.Schedule(job.steps);
  if (lr.ok()) job.lr = *lr;
  job.lr_status = lr.status();
  return flags.resume.empty() ? job.lr_status : absl::OkStatus();
}

DeviceClass DeviceClassOf(DeviceKind device, const proto::Plan& plan) {
  if (device == DeviceKind::kNull) return DeviceOf(plan.target());
  return device == DeviceKind::kCuda ? DeviceClass::kCuda : DeviceClass::kCpu;
}

bool HasProgram(const proto::Plan& plan, std::string_view name) {
  return std::any_of(plan.programs().begin(), plan.programs().end(),
                     [name](const proto::Program& program) { return program.name() == name; });
}

// What the flags ask for, the plan has a program for.
absl::Status CheckPrograms(const Flags& flags, const proto::Plan& plan) {
  const auto lacks = [&flags](const char* what) {
    return absl::InvalidArgumentError(absl::StrCat("'", flags.plan, "' ", what));
  };
  if (flags.trains() && EvaluatesOnly(plan))
    return lacks("does not train: it is of ftc compile --evaluate, for --evaluate and --generate");
  if (flags.evaluate && !HasProgram(plan, "eval_step")) return lacks("has no program that evaluates");
  if ((flags.generate > 0 || flags.sample_every > 0) && !HasProgram(plan, "sample_step"))
    return lacks("cannot continue a text: compile it with --sample (ftc compile model.mlir --sample ...)");
  return absl::OkStatus();
}

absl::Status TakeThreads(const Flags& flags, Job& job) {
  const int cores = CoresOfProcess(), local_ranks = job.environment.local_world_size;
  FT_ASSIGN_OR_RETURN(job.threads, ChooseThreads(flags, cores, local_ranks));
  job.may_spin = job.threads * local_ranks < cores;
  return absl::OkStatus();
}

absl::Status TakePlan(const Flags& flags, Job& job) {
  const LaunchEnvironment& environment = job.environment;
  FT_RETURN_IF_ERROR(LoadPlan(flags, environment.world_size, environment.local_world_size, job));
  if (!flags.trains()) return absl::OkStatus();
  if (absl::Status status = CheckGlobalBatch(job.plan(), environment.world_size); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat("'", flags.plan, "': ", status.message()));
  }
  return absl::OkStatus();
}

absl::Status TakeData(const Flags& flags, Job& job) {
  if (flags.trains()) {
    FT_ASSIGN_OR_RETURN(job.data, OpenData(flags, flags.data, job.plan()));
  }
  const std::vector<DataEntry>& evaluated = flags.evaluate ? flags.data : flags.eval_data;
  if (!evaluated.empty()) {
    FT_ASSIGN_OR_RETURN(job.eval_data, OpenData(flags, evaluated, job.plan()));
    FT_RETURN_IF_ERROR(CheckEvaluated(flags, job));
  }
  return absl::OkStatus();
}

absl::Status TakePrompt(const Flags& flags, Job& job) {
  if (flags.sample_every == 0 && flags.generate == 0) return absl::OkStatus();
  FT_ASSIGN_OR_RETURN(Prompts prompts, Prompts::Open(flags.prompt, job.plan()));
  job.prompts = std::move(prompts);
  return absl::OkStatus();
}

absl::StatusOr<Mesh> ChooseMesh(const Flags& flags, const proto::Plan& plan, int world_size,
                                int local_world_size) {
  if (!flags.mesh.has_value() && flags.device == DeviceKind::kNull)
    return CompiledMesh(plan, static_cast<int>(plan.target().ranks_per_node()), world_size);
  if (!flags.mesh.has_value()) return MeshFor(plan, world_size, local_world_size);
  if (flags.mesh->world_size() == world_size) return *flags.mesh;
  return absl::InvalidArgumentError(absl::StrCat("--mesh=", MeshText(*flags.mesh), " has ",
                                                 flags.mesh->world_size(), " ranks, but the run has ",
                                                 world_size));
}

}  // namespace

int64_t Job::SequencesPerStep() const {
  return static_cast<int64_t>(plan().batch()) * world_size() * std::max<int64_t>(1, plan().micro_steps());
}

absl::Status LoadPlan(const Flags& flags, int world_size, int local_world_size, Job& job) {
  FT_ASSIGN_OR_RETURN(job.file, ReadPlan(flags.plan));
  if (absl::Status status = VerifyPlan(job.plan()); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat("'", flags.plan, "': ", status.message()));
  }
  FT_RETURN_IF_ERROR(CheckPrograms(flags, job.plan()));
  if (flags.device == DeviceKind::kNull && !job.plan().has_target()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", flags.plan,
        "': it does not say what machine it was compiled for, so there is nothing to simulate; compile "
        "it again"));
  }
  FT_ASSIGN_OR_RETURN(const Mesh mesh, ChooseMesh(flags, job.plan(), world_size, local_world_size));
  FT_ASSIGN_OR_RETURN(job.bound, BindPlan(job.plan(), mesh, DeviceClassOf(flags.device, job.plan())));
  FT_RETURN_IF_ERROR(VerifyBound(job.plan(), job.bound));
  return absl::OkStatus();
}

absl::Span<const Preparation> Preparations() {
  static constexpr Preparation kAll[] = {
      {"threads", "", TakeThreads},   {"plan", "", TakePlan},     {"data", "plan", TakeData},
      {"prompt", "plan", TakePrompt}, {"init", "plan", TakeInit}, {"outputs", "plan", TryOutputs},
      {"settings", "data", Settle},
  };
  return kAll;
}

// What a run started from can give its files where it is a folder.
FolderRequest FolderRequestOf(const Flags& flags) {
  std::error_code ignored;
  const bool from_folder = std::filesystem::is_directory(flags.init, ignored);
  return {.folder = flags.save_hf,
          .dtype = flags.save_dtype,
          .max_file_bytes = flags.max_shard_size,
          .origin = from_folder ? flags.init : "",
          .tokenizer = flags.tokenizer};
}

absl::StatusOr<Job> PrepareJob(const Flags& flags, const LaunchEnvironment& environment) {
  Job job;
  job.environment = environment;
  for (const Preparation& preparation : Preparations()) FT_RETURN_IF_ERROR(preparation.run(flags, job));
  return job;
}

std::string Fingerprint(const Flags& flags, const Job& job) {
  std::string text = absl::StrFormat(
      "plan=%s steps=%d seed=%d lr=%.17g lr_schedule=%s warmup_steps=%d min_lr=%.17g max_bad_steps=%d "
      "shuffle=%s "
      "init=%s adapter=%s save_weights=%s save_hf=%s data_tokens=%d data=%016x mesh=%s",
      PlanHashText(job.file.hash), job.steps, job.seed, job.lr.peak, Name(job.lr.kind), job.lr.warmup_steps,
      job.lr.min_lr, job.max_bad_steps, OnOff(job.shuffle), OnOff(!flags.init.empty()),
      OnOff(!flags.adapter.empty()), OnOff(!flags.save_weights.empty()), OnOff(!flags.save_hf.empty()),
      job.data == nullptr ? 0 : job.data->num_tokens(),
      job.data == nullptr ? 0 : IdentityHash(IdentityOf(*job.data)), MeshText(job.bound.mesh));
  if (!flags.trains()) absl::StrAppend(&text, " evaluate=", OnOff(flags.evaluate));
  if (job.prompts.has_value())
    absl::StrAppendFormat(
        &text, " generate=%d sample_every=%d sample_tokens=%d prompt=%016x temperature=%.17g top_k=%d",
        flags.generate, flags.sample_every, flags.sample_tokens, job.prompts->Hash(), flags.temperature,
        flags.top_k);
  if (!job.lr_status.ok()) absl::StrAppend(&text, " schedule=", job.lr_status.message());
  if (job.eval_data != nullptr) {
    absl::StrAppendFormat(&text, " eval_data=%016x eval_tokens=%d eval_every=%d eval_steps=%d",
                          IdentityHash(IdentityOf(*job.eval_data)), job.eval_data->num_tokens(),
                          flags.eval_every, flags.eval_steps);
  }
  absl::StrAppendFormat(&text, " checkpoint_dir=%s resume=%s", OnOff(flags.saves()), flags.resume);
  if (flags.saves() || !flags.resume.empty()) {
    absl::StrAppendFormat(&text, " save_every=%d save_every_s=%.17g state_dict_type=%s data_changed=%s",
                          flags.save_every.steps, absl::ToDoubleSeconds(flags.save_every.time),
                          flags.state_dict_type.has_value() ? Name(*flags.state_dict_type) : "auto",
                          flags.data_changed == DataChanged::kRestart ? "restart" : "error");
  }
  // These decide which collectives a rank takes part in, when it enqueues and when it replays them, and how
  // it computes. Steps of a trace are enqueued.
  const cuda::PlatformOptions platform = flags.platform();
  absl::StrAppendFormat(
      &text,
      " device=%s comm_backend=%s trace_steps=%d cuda_graph=%s deterministic=%s tf32=%s attention=%s "
      "share_gpus=%s kernels=%s find_nan=%s",
      Name(flags.device), Name(flags.comm_backend), flags.trace.empty() ? 0 : flags.trace_steps,
      OnOff(flags.cuda_graph), OnOff(platform.deterministic), OnOff(platform.allow_tf32),
      Name(platform.attention), OnOff(flags.device == DeviceKind::kCuda && platform.share_devices),
      flags.kernels == Kernels::kGenerated ? "generated" : "reference", OnOff(flags.find_nan));
  return text;
}

std::string FingerprintLabel(const Flags& flags, const Job& job) {
  return absl::StrFormat("%s (hash %s)", flags.plan, PlanHashText(job.file.hash));
}

}  // namespace ft
