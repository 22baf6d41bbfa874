#include "runtime/collective/rendezvous/foreign_launcher.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace ft {
namespace {

// A variable that says how many processes there are (or, `rank`, which one this is), who sets it, and the
// variables by which RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE can be set from what that launcher
// says.
struct Sign {
  const char* variable;
  bool rank;
  const char* launcher;
  const char* settings;
  const char* beside = nullptr;  // what must be set, too
  bool of_agents = true;         // counts agents where there are agents
  const char* unless = nullptr;  // says it better where it is set
};

constexpr char kSlurm[] = "RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID";
constexpr char kOpenMpi[] =
    "RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK "
    "LOCAL_WORLD_SIZE=$OMPI_COMM_WORLD_LOCAL_SIZE";
constexpr char kHydra[] =
    "RANK=$PMI_RANK WORLD_SIZE=$PMI_SIZE LOCAL_RANK=$MPI_LOCALRANKID LOCAL_WORLD_SIZE=$MPI_LOCALNRANKS";
constexpr char kAny[] = "RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE";

constexpr Sign kSigns[] = {
    {"SLURM_STEP_NUM_TASKS", false, "srun", kSlurm, "SLURM_PROCID"},
    {"SLURM_NTASKS", false, "srun", kSlurm, "SLURM_STEP_ID", true, "SLURM_STEP_NUM_TASKS"},
    {"SLURM_PROCID", true, "srun", kSlurm},
    {"OMPI_COMM_WORLD_SIZE", false, "mpirun", kOpenMpi},
    {"PMI_SIZE", false, "mpirun", kHydra},
    {"MPI_LOCALNRANKS", false, "mpirun", kHydra},
    {"MV2_COMM_WORLD_SIZE", false, "mpirun", kAny},
    {"PMIX_RANK", true, "a launcher that speaks PMIx", kAny},
    {"PET_NNODES", false, "a launcher that expects torchrun", ""},
    {"PET_NPROC_PER_NODE", false, "a launcher that expects torchrun", "", nullptr, false},
    {"LOCAL_WORLD_SIZE", false, "a launcher", kAny, nullptr, false, "WORLD_SIZE"},
};

// The number that a value stands for, the larger one of torchrun's "1:4"; 0 for words such as "auto".
int NumberOf(const char* value) {
  int largest = 0;
  for (const absl::string_view part : absl::StrSplit(value, ':')) {
    int number = 0;
    if (absl::SimpleAtoi(part, &number)) largest = std::max(largest, number);
  }
  return largest;
}

}  // namespace

std::optional<ForeignWorld> FindForeignWorld(EnvironmentLookup lookup, ProcessKind kind) {
  for (const Sign& sign : kSigns) {
    const char* value = lookup(sign.variable);
    if (value == nullptr || NumberOf(value) < (sign.rank ? 1 : 2)) continue;
    if (sign.beside != nullptr && lookup(sign.beside) == nullptr) continue;
    if (sign.unless != nullptr && lookup(sign.unless) != nullptr) continue;
    if (kind == ProcessKind::kAgent && !sign.of_agents) continue;
    return ForeignWorld{.seen = absl::StrCat("this is one of several processes started by ", sign.launcher,
                                             " (", sign.variable, "=", value, ")"),
                        .settings = sign.settings};
  }
  return std::nullopt;
}

absl::Status CheckStartedAlone(EnvironmentLookup lookup) {
  const std::optional<ForeignWorld> world = FindForeignWorld(lookup, ProcessKind::kRank);
  if (!world.has_value()) return absl::OkStatus();
  const std::string set =
      world->settings.empty()
          ? "start it by torchrun --no-python, or by ftrun on each node"
          : absl::StrCat(
                "set ", world->settings,
                ", MASTER_ADDR (rank 0's host) and MASTER_PORT on each, or start one ftrun on each node with "
                "--nnodes and --node-rank");
  return absl::InvalidArgumentError(absl::StrCat(world->seen,
                                                 ", but RANK is not set, so each would train alone and "
                                                 "write the same files: ",
                                                 set,
                                                 "; to train alone all the same, set RANK=0 WORLD_SIZE=1 "
                                                 "LOCAL_RANK=0 LOCAL_WORLD_SIZE=1"));
}

}  // namespace ft
