#include "runtime/collective/rendezvous/foreign_launcher.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/collective/rendezvous/launchers.h"

namespace ft {
namespace {

// A variable, beside those of launchers.h, that says how many processes there are or which one this is, and
// who sets it.
struct Sign {
  const char* variable;
  int least;  // the smallest number that is a sign of several
  const char* launcher;
  bool of_ranks = true;
  bool of_agents = true;
  const char* unless = nullptr;  // says it better where it is set
};

constexpr Sign kSigns[] = {
    {"MPI_LOCALNRANKS", 2, "mpiexec"},
    {"PMIX_RANK", 1, "a launcher that speaks PMIx"},  // which does not say how many there are
    {"PET_NNODES", 2, "a launcher that expects torchrun"},
    {"PET_NPROC_PER_NODE", 2, "a launcher that expects torchrun", true, false},
    {"LOCAL_WORLD_SIZE", 2, "a launcher", true, false, "WORLD_SIZE"},
    // An agent that stands where a rank was meant to, in a pod of a PyTorchJob.
    {"WORLD_SIZE", 2, "a launcher", false, true},
};

bool IsSign(EnvironmentLookup lookup, const char* variable, int least) {
  const char* value = lookup(variable);
  return value != nullptr && NumberOf(value) >= least;
}

std::string Seen(EnvironmentLookup lookup, const char* variable, absl::string_view launcher) {
  return absl::StrCat("this is one of several processes started by ", launcher, " (", variable, "=",
                      lookup(variable), ")");
}

// Launchers of the table; those that did not set all that a rank needs, too.
std::optional<ForeignWorld> FindKnownLauncher(EnvironmentLookup lookup) {
  const absl::StatusOr<std::optional<StartedBy>> started = FindLauncher(lookup);
  if (started.ok() && started->has_value() && (*started)->world_size > 1) {
    const StartedBy& by = **started;
    return ForeignWorld{Seen(lookup, by.world_size_variable, by.launcher->name)};
  }
  for (const Launcher& launcher : Launchers()) {
    const char* size = launcher.world_size[0];
    if (launcher.nesting == Nesting::kInner && IsSign(lookup, size, 2))
      return ForeignWorld{Seen(lookup, size, launcher.name)};
    if (IsSign(lookup, launcher.rank, 1)) return ForeignWorld{Seen(lookup, launcher.rank, launcher.name)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<ForeignWorld> FindForeignWorld(EnvironmentLookup lookup, ProcessKind kind) {
  if (std::optional<ForeignWorld> known = FindKnownLauncher(lookup); known.has_value()) return known;
  for (const Sign& sign : kSigns) {
    if (!(kind == ProcessKind::kAgent ? sign.of_agents : sign.of_ranks)) continue;
    if (sign.unless != nullptr && lookup(sign.unless) != nullptr) continue;
    if (!IsSign(lookup, sign.variable, sign.least)) continue;
    return ForeignWorld{Seen(lookup, sign.variable, sign.launcher), absl::StartsWith(sign.variable, "PET_")};
  }
  return std::nullopt;
}

absl::Status CheckStartedAlone(EnvironmentLookup lookup) {
  if (const char* pod = lookup("JOB_COMPLETION_INDEX"); pod != nullptr) {
    return BadVariable("JOB_COMPLETION_INDEX", pod,
                       "says that this is a pod of an indexed Job, but WORLD_SIZE is not set, so each would "
                       "train alone and write the same files: set WORLD_SIZE (the Job's completions) and "
                       "MASTER_ADDR (the name of pod 0) in the manifest; WORLD_SIZE=1 where it has one pod");
  }
  const std::optional<ForeignWorld> world = FindForeignWorld(lookup, ProcessKind::kRank);
  if (!world.has_value()) return absl::OkStatus();
  const absl::string_view set =
      world->of_torchrun
          ? "start it by torchrun --no-python, or by ftrun on each node"
          : "set RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR (rank 0's host) and MASTER_PORT "
            "on each, or start one ftrun on each node with --nnodes and --node-rank";
  return absl::InvalidArgumentError(absl::StrCat(
      world->seen, ", but RANK is not set, so each would train alone and write the same files: ", set,
      "; to train alone all the same, set ", kAlone));
}

std::string RemarkOnAllocation(EnvironmentLookup lookup) {
  const char* tasks = lookup("SLURM_NTASKS");
  if (tasks == nullptr || lookup("SLURM_JOB_ID") == nullptr || NumberOf(tasks) < 2) return "";
  return absl::StrCat("this process was not started by srun, so it trains alone, though SLURM_NTASKS='",
                      tasks, "': for one rank a task, start it by srun; without this line, set ", kAlone);
}

}  // namespace ft
