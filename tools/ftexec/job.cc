#include "tools/ftexec/job.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/verify_bound.h"
#include "runtime/plan/verify_plan.h"

namespace ft {
namespace {

int CoresOfProcess() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return CPU_COUNT(&set);
}

int ChooseThreads(const Flags& flags, int cores, int local_ranks) {
  if (flags.threads > 0) return flags.threads;
  int threads = 0;
  const char* wanted = std::getenv("OMP_NUM_THREADS");
  if (wanted != nullptr && absl::SimpleAtoi(wanted, &threads) && threads > 0) return threads;
  return std::max(1, cores / std::max(1, local_ranks));
}

// A run of hours must not fail at its end because of a folder that is not there.
absl::Status CheckFolder(const std::string& file) {
  if (file.empty()) return absl::OkStatus();
  const size_t slash = file.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : file.substr(0, std::max<size_t>(slash, 1));
  return access(folder.c_str(), W_OK) == 0 ? absl::OkStatus() : PosixError(errno, "write into", folder);
}

bool IsSameFile(const std::string& a, const std::string& b) {
  std::error_code ignored;
  const std::filesystem::path path = std::filesystem::weakly_canonical(a, ignored);
  if (std::filesystem::is_character_file(path, ignored))
    return false;  // /dev/null may be given several times
  return !a.empty() && !b.empty() && path == std::filesystem::weakly_canonical(b, ignored);
}

// What a run writes must not be what it reads, nor be written twice. Only --save-weights may replace --init:
// that is read whole before.
absl::Status CheckOutputs(const Flags& flags) {
  struct File {
    const char* name;
    const std::string& path;
  };
  const File data = {"--data", flags.data}, plan = {"the plan", flags.plan}, init = {"--init", flags.init};
  const File weights = {"--save-weights", flags.save_weights}, metrics = {"--metrics", flags.metrics};
  const File trace = {"--trace", flags.trace}, eval_data = {"--eval-data", flags.eval_data};
  const std::pair<File, std::vector<File>> outputs[] = {
      {weights, {plan, data, eval_data}},
      {metrics, {plan, data, eval_data, init, weights}},
      {trace, {plan, data, eval_data, init, weights, metrics}}};
  for (const auto& [output, others] : outputs) {
    FT_RETURN_IF_ERROR(CheckFolder(output.path));
    for (const File& other : others) {
      if (!IsSameFile(output.path, other.path)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          output.name, " and ", other.name, " are the same file, '", output.path, "'; give another name"));
    }
  }
  return absl::OkStatus();
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

absl::StatusOr<std::unique_ptr<TokenDataset>> OpenData(const Flags& flags, const std::string& path,
                                                       const proto::Plan& plan) {
  return OpenDataset(path, static_cast<int64_t>(plan.vocab_size()), static_cast<int64_t>(plan.seq_len()),
                     flags.data_format);
}

absl::Status Settle(const Flags& flags, Job& job) {
  FT_ASSIGN_OR_RETURN(const TrainingSettings of_plan, TrainingSettingsOf(job.plan()));
  const TrainingSettings run = TrainingSettings::Merge(flags.run, of_plan);
  const int64_t per_step = static_cast<int64_t>(job.plan().batch()) * job.world_size() *
                           std::max<int64_t>(1, job.plan().micro_steps());
  job.steps = run.steps.value_or((job.data->num_sequences() + per_step - 1) / per_step);
  job.seed = run.seed.value_or(job.seed);
  job.max_bad_steps = run.max_bad_steps.value_or(job.max_bad_steps);
  FT_ASSIGN_OR_RETURN(job.lr, run.Schedule(job.steps));
  return absl::OkStatus();
}

absl::StatusOr<Mesh> ChooseMesh(const Flags& flags, const proto::Plan& plan, int world_size,
                                int local_world_size) {
  if (!flags.mesh.has_value()) return MeshFor(plan, world_size, local_world_size);
  if (flags.mesh->world_size() == world_size) return *flags.mesh;
  return absl::InvalidArgumentError(absl::StrCat("--mesh=", MeshText(*flags.mesh), " has ",
                                                 flags.mesh->world_size(), " ranks, but the run has ",
                                                 world_size));
}

}  // namespace

DeviceClass DeviceClassOf(DeviceKind device) {
  return device == DeviceKind::kCuda ? DeviceClass::kCuda : DeviceClass::kCpu;
}

absl::Status LoadPlan(const Flags& flags, int world_size, int local_world_size, Job& job) {
  FT_ASSIGN_OR_RETURN(job.file, ReadPlan(flags.plan));
  if (absl::Status status = VerifyPlan(job.plan()); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat("'", flags.plan, "': ", status.message()));
  }
  FT_ASSIGN_OR_RETURN(const Mesh mesh, ChooseMesh(flags, job.plan(), world_size, local_world_size));
  FT_ASSIGN_OR_RETURN(job.bound, BindPlan(job.plan(), mesh, DeviceClassOf(flags.device)));
  FT_RETURN_IF_ERROR(VerifyBound(job.plan(), job.bound));
  return absl::OkStatus();
}

absl::StatusOr<Job> PrepareJob(const Flags& flags, const LaunchEnvironment& environment) {
  Job job;
  job.environment = environment;
  FT_RETURN_IF_ERROR(LoadPlan(flags, environment.world_size, environment.local_world_size, job));
  FT_ASSIGN_OR_RETURN(job.data, OpenData(flags, flags.data, job.plan()));
  if (!flags.eval_data.empty()) {
    FT_ASSIGN_OR_RETURN(job.eval_data, OpenData(flags, flags.eval_data, job.plan()));
  }
  if (environment.rank == 0) FT_RETURN_IF_ERROR(CheckOutputs(flags));
  FT_RETURN_IF_ERROR(Settle(flags, job));
  const int cores = CoresOfProcess(), local_ranks = environment.local_world_size;
  job.threads = ChooseThreads(flags, cores, local_ranks);
  job.may_spin = job.threads * local_ranks < cores;
  return job;
}

std::string Fingerprint(const Flags& flags, const Job& job) {
  std::string text = absl::StrFormat(
      "plan=%s steps=%d seed=%d lr=%.17g lr_schedule=%s warmup_steps=%d min_lr=%.17g max_bad_steps=%d "
      "shuffle=%s "
      "init=%s save_weights=%s data_tokens=%d mesh=%s",
      PlanHashText(job.file.hash), job.steps, job.seed, job.lr.peak, Name(job.lr.kind), job.lr.warmup_steps,
      job.lr.min_lr, job.max_bad_steps, OnOff(flags.shuffle), OnOff(!flags.init.empty()),
      OnOff(!flags.save_weights.empty()), job.data->num_tokens(), MeshText(job.bound.mesh));
  if (job.eval_data != nullptr) {
    absl::StrAppendFormat(&text, " eval_tokens=%d eval_every=%d eval_steps=%d", job.eval_data->num_tokens(),
                          flags.eval_every, flags.eval_steps);
  }
  // These decide which collectives a rank takes part in, when it enqueues and when it replays them, and how
  // it computes. Steps of a trace are enqueued.
  const cuda::PlatformOptions& platform = flags.cuda.platform;
  absl::StrAppendFormat(
      &text, " device=%s comm_backend=%s trace_steps=%d cuda_graph=%s deterministic=%s tf32=%s attention=%s",
      Name(flags.device), Name(flags.backend), flags.trace.empty() ? 0 : flags.trace_steps,
      OnOff(flags.cuda.graph), OnOff(platform.deterministic), OnOff(platform.allow_tf32),
      Name(platform.attention));
  return text;
}

std::string FingerprintLabel(const Flags& flags, const Job& job) {
  return absl::StrFormat("%s (hash %s)", flags.plan, PlanHashText(job.file.hash));
}

}  // namespace ft
