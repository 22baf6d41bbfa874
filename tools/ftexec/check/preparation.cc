#include "tools/ftexec/check/preparation.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fmt/format.h"
#include "runtime/base/output_check.h"
#include "runtime/checkpoint/state/plan_state.h"
#include "runtime/collective/plan_communicators.h"
#include "runtime/data/data_text.h"
#include "runtime/plan/inputs.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/report.h"
#include "tools/ftexec/peers.h"
#include "tools/ftexec/thread_room.h"

namespace ft {
namespace {

std::vector<int> CpusOfProcess() {
  std::vector<int> cpus;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

std::string PlanText(const Job& job) {
  const proto::Plan& plan = job.plan();
  return fmt::format("{}, {} parameters, {}, {}; proved for {}", plan.model(), CountParameters(plan),
                     plan.strategy(), PlanHashText(job.file.hash), MeshText(job.bound.mesh));
}

std::string DataOfJob(const Job& job) {
  std::string text = DataText(*job.data);
  if (job.eval_data != nullptr) absl::StrAppend(&text, "; to evaluate on: ", DataText(*job.eval_data));
  return text;
}

std::string OutputsText(const Flags& flags) {
  std::vector<std::string> paths;
  for (const std::string* path :
       {&flags.save_weights, &flags.save_hf, &flags.metrics, &flags.trace, &flags.log_dir})
    if (!path->empty()) paths.push_back(*path);
  if (!paths.empty()) return absl::StrJoin(paths, ", ") + " can be written";
  return flags.saves() ? "checkpoints alone" : "none are asked for";
}

std::string SettingsText(const Job& job) {
  return fmt::format("{} steps of {} {} over all ranks, lr {} {}, seed {}", job.steps, job.SequencesPerStep(),
                     ExampleWord(job.plan()), job.lr.peak, Name(job.lr.kind), job.seed);
}

// What decides which collectives and agreements a check takes part in.
std::string Together(const Flags& flags, const Job& job) {
  return absl::StrCat(PlanHashText(job.file.hash), " ", MeshText(job.bound.mesh), " ",
                      static_cast<int>(flags.device), " ", static_cast<int>(flags.comm_backend), " ",
                      flags.deterministic, " ", flags.saves(), " ", flags.resume);
}

// What to say of a preparation that succeeded; empty: nothing.
std::string TextOf(std::string_view name, const Flags& flags, const Job& job) {
  if (name == "plan") return PlanText(job);
  if (name == "data") return DataOfJob(job);
  if (name == "init" && !job.init.empty()) return absl::StrCat(flags.init, " fits the plan's model");
  if (name == "outputs") return OutputsText(flags);
  if (name == "settings") return SettingsText(job);
  return "";
}

// "CUDA device 3: NVIDIA H200, ..." without the number, which differs between ranks.
std::string KindOf(const std::string& description) {
  const size_t colon = description.find(": ");
  return colon == description.npos ? description : description.substr(colon + 2);
}

void OpenDevice(const Flags& flags, const NcclSource& load_nccl, PreparedCheck& prepared) {
  absl::StatusOr<std::unique_ptr<RankDevice>> device = RankDevice::Open(flags, prepared.job, load_nccl);
  absl::Status status = device.status();
  if (status.ok()) status = ProbeTeam(prepared.job, **device);
  if (!status.ok()) return prepared.facts.findings.push_back(Failure("device", status));
  prepared.device = *std::move(device);
  prepared.facts.has_device = true;
  if (prepared.device->is_cpu())
    prepared.facts.threads = prepared.job.threads;
  else
    prepared.facts.device = KindOf(prepared.device->device().description());
}

// What a save copies into memory of the host.
uint64_t SnapshotBytes(const Flags& flags, const Job& job) {
  if (!flags.saves() || !flags.async_save) return 0;
  const absl::StatusOr<StateLayout> state = StateOfPlan(job.plan(), job.bound.mesh);
  if (!state.ok()) return 0;
  const bool is_local = flags.state_dict_type == CheckpointType::kLocal;
  return is_local ? LocallySavedBytes(*state, job.rank()) : SavedBytes(*state, job.rank());
}

}  // namespace

PreparedCheck PrepareCheck(const Flags& flags, const LaunchEnvironment& environment,
                           const NcclSource& load_nccl) {
  PreparedCheck prepared;
  Job& job = prepared.job;
  job.environment = environment;
  std::vector<std::string_view> done;
  const auto is_done = [&done](std::string_view name) {
    return std::find(done.begin(), done.end(), name) != done.end();
  };
  for (const Preparation& preparation : Preparations()) {
    if (!preparation.needs.empty() && !is_done(preparation.needs)) continue;
    std::vector<Finding>& findings = prepared.facts.findings;
    if (const absl::Status status = preparation.run(flags, job); !status.ok()) {
      findings.push_back(Failure(std::string(preparation.name), status));
      continue;
    }
    done.push_back(preparation.name);
    const std::string text = TextOf(preparation.name, flags, job);
    if (!text.empty()) findings.push_back(Ok(std::string(preparation.name), text));
  }
  if (is_done("plan") && is_done("data")) {
    prepared.facts.fingerprint = Fingerprint(flags, job);
    prepared.facts.label = FingerprintLabel(flags, job);
  }
  prepared.facts.cpus = CpusOfProcess();
  if (is_done("plan")) prepared.facts.together = Together(flags, job);
  if (is_done("plan") && is_done("threads")) OpenDevice(flags, load_nccl, prepared);
  return prepared;
}

void ReckonMemory(const Flags& flags, const Rendezvous& rendezvous, PreparedCheck& prepared) {
  RankFacts& facts = prepared.facts;
  facts.pools = MemoryPoolsOfProcess();
  facts.address_space = AddressSpaceLeft();
  facts.shm_room = FreeRoom("/dev/shm");
  if (prepared.device == nullptr) return;
  const Job& job = prepared.job;
  const bool cpu = prepared.device->is_cpu();
  const absl::StatusOr<CollectiveBackend> backend = ResolveBackend(rendezvous, flags.comm_backend, !cpu);
  if (!backend.ok()) {
    facts.has_device = false;  // that could talk to the others
    return facts.findings.push_back(Failure("backend", backend.status()));
  }
  const uint64_t staging = cpu ? StagingBytes(job.plan(), job.bound.mesh, *backend) : 0;
  if (*backend == CollectiveBackend::kShm)
    facts.shm_bytes = staging;
  else if (!cpu && rendezvous.one_host())  // the host's own
    facts.shm_bytes = StagingBytes(CollectiveBackend::kShm, job.world_size());
  facts.memory_bytes = (cpu ? job.bound.arena_bytes() : 0) + job.bound.host_arena_bytes() +
                       BatchBytes(job.plan()) + SnapshotBytes(flags, job) +
                       std::max(staging, facts.shm_bytes);
}

}  // namespace ft
