#include "runtime/collective/rendezvous/launchers.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

constexpr char kMpirun[] = "mpirun -x MASTER_ADDR=HOST";
constexpr char kMpiexec[] = "mpiexec -genv MASTER_ADDR HOST";
constexpr char kManifest[] = "MASTER_ADDR in the pods' env";

// Inner ones first. Where the names come from: Open MPI's "Environment variables set for MPI applications";
// what MPICH 4.0's Hydra and Slurm 22.05's srun set; MVAPICH2's user guide; Cray's PALS; Kubernetes' page on
// indexed Jobs.
constexpr Launcher kLaunchers[] = {
    {.name = "Open MPI's mpirun",
     .rank = "OMPI_COMM_WORLD_RANK",
     .world_size = {"OMPI_COMM_WORLD_SIZE"},
     .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
     .local_world_size = "OMPI_COMM_WORLD_LOCAL_SIZE",
     .node = nullptr,
     .beside = {"OMPI_COMM_WORLD_RANK"},
     .job = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"},
     .master = MasterSource::kOpenMpi,
     .nesting = Nesting::kInner,
     .pass_on = kMpirun},
    {.name = "mpiexec",  // Hydra: MPICH, Intel MPI
     .rank = "PMI_RANK",
     .world_size = {"PMI_SIZE"},
     .local_rank = "MPI_LOCALRANKID",
     .local_world_size = "MPI_LOCALNRANKS",
     .node = nullptr,
     .beside = {"MPI_LOCALRANKID"},
     .job = {"PALS_APID", "SLURM_JOB_ID"},
     .master = MasterSource::kAllocation,
     .nesting = Nesting::kInner,
     .pass_on = kMpiexec},
    {.name = "MVAPICH's mpirun_rsh",
     .rank = "MV2_COMM_WORLD_RANK",
     .world_size = {"MV2_COMM_WORLD_SIZE"},
     .local_rank = "MV2_COMM_WORLD_LOCAL_RANK",
     .local_world_size = "MV2_COMM_WORLD_LOCAL_SIZE",
     .node = nullptr,
     .beside = {"MV2_COMM_WORLD_RANK"},
     .job = {"SLURM_JOB_ID"},
     .master = MasterSource::kAllocation,
     .nesting = Nesting::kInner,
     .pass_on = "mpirun_rsh ... MASTER_ADDR=HOST ftexec"},
    {.name = "PALS' mpiexec",
     .rank = "PMI_RANK",
     .world_size = {"PMI_SIZE"},
     .local_rank = "PMI_LOCAL_RANK",
     .local_world_size = "PMI_LOCAL_SIZE",
     .node = nullptr,
     .beside = {"PMI_LOCAL_RANK"},
     .job = {"PALS_APID"},
     .master = MasterSource::kGiven,
     .nesting = Nesting::kInner,
     .pass_on = "mpiexec --env MASTER_ADDR=HOST"},
    {.name = "srun",
     .rank = "SLURM_PROCID",
     .world_size = {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
     .local_rank = "SLURM_LOCALID",
     .local_world_size = nullptr,  // follows from SLURM_STEP_TASKS_PER_NODE
     .node = "SLURM_NODEID",
     // A batch script has a SLURM_PROCID, too, but is no task of a step.
     .beside = {"SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS"},
     .job = {"SLURM_JOB_ID", "SLURM_JOBID"},
     .master = MasterSource::kStep,
     .nesting = Nesting::kOuter,
     .pass_on = "srun --export=ALL,MASTER_ADDR=HOST"},
    {.name = "a launcher that speaks PMI",
     .rank = "PMI_RANK",
     .world_size = {"PMI_SIZE"},
     .local_rank = nullptr,
     .local_world_size = nullptr,
     .node = nullptr,
     .beside = {"PMI_RANK"},
     .job = {"PMI_JOBID"},
     .master = MasterSource::kGiven,
     .nesting = Nesting::kLast,
     .pass_on = kMpiexec},
    {.name = "an indexed Job",
     .rank = "JOB_COMPLETION_INDEX",
     .world_size = {"WORLD_SIZE"},
     .local_rank = nullptr,
     .local_world_size = nullptr,
     .node = "JOB_COMPLETION_INDEX",
     .beside = {"JOB_COMPLETION_INDEX"},
     .job = {},
     .master = MasterSource::kGiven,
     .nesting = Nesting::kLast,
     .pass_on = kManifest},
};

const char* FirstSet(absl::Span<const char* const> names, EnvironmentLookup lookup) {
  const auto set = std::find_if(names.begin(), names.end(),
                                [&](const char* name) { return name != nullptr && lookup(name) != nullptr; });
  return set == names.end() ? nullptr : *set;
}

bool SaysRank(const Launcher& launcher, EnvironmentLookup lookup) {
  return lookup(launcher.rank) != nullptr && FirstSet(launcher.world_size, lookup) != nullptr &&
         FirstSet(launcher.beside, lookup) != nullptr;
}

// None: the variables of a step that are left over where there is none. A batch script that was submitted by
// a task of a step inherits them, beside the numbers of its own allocation.
absl::StatusOr<std::optional<StartedBy>> ReadRankOf(const Launcher& launcher, EnvironmentLookup lookup) {
  StartedBy started{&launcher, 0, 1, FirstSet(launcher.world_size, lookup)};
  FT_RETURN_IF_ERROR(ReadNumber(lookup, started.world_size_variable, 1, kMaxWorldSize, &started.world_size));
  FT_RETURN_IF_ERROR(ReadNumber(lookup, launcher.rank, 0, kMaxWorldSize, &started.rank));
  for (const char* other : launcher.world_size) {
    int size = started.world_size;
    if (other == nullptr) continue;
    FT_RETURN_IF_ERROR(ReadNumber(lookup, other, 1, kMaxWorldSize, &size));
    if (size == started.world_size) continue;
    if (started.world_size == 1 && started.rank == 0) return std::nullopt;
    return BadVariable(started.world_size_variable, lookup(started.world_size_variable),
                       absl::StrCat("contradicts ", other, "='", lookup(other),
                                    "': variables of a step are left over; start the ranks by ",
                                    launcher.name, "; to train alone, set ", kAlone));
  }
  if (started.rank >= started.world_size) {
    return BadVariable(launcher.rank, lookup(launcher.rank),
                       absl::StrCat("is not a rank of ", WorldSizeSetting(started, lookup),
                                    ": ranks go from 0 to ", started.world_size - 1));
  }
  return started;
}

// `inner` is what counts; whether `other` may say what it says beside it.
absl::Status CheckTogether(const StartedBy& inner, const StartedBy& other, EnvironmentLookup lookup) {
  if (inner.rank == other.rank && inner.world_size == other.world_size) return absl::OkStatus();
  if (other.launcher->nesting == Nesting::kOuter && inner.world_size > 1) return absl::OkStatus();
  const auto setting = [&](const StartedBy& started) {
    return absl::StrCat(started.launcher->rank, "='", lookup(started.launcher->rank), "' and ",
                        WorldSizeSetting(started, lookup), " (", started.launcher->name, ")");
  };
  return absl::InvalidArgumentError(absl::StrCat(
      "environment variables contradict each other: ", setting(inner), ", ", setting(other),
      ": unset those of the launcher that did not start this process; to train alone, set ", kAlone));
}

}  // namespace

absl::Span<const Launcher> Launchers() { return kLaunchers; }

std::string WorldSizeSetting(const StartedBy& started, EnvironmentLookup lookup) {
  return absl::StrCat(started.world_size_variable, "='", lookup(started.world_size_variable), "'");
}

absl::StatusOr<std::optional<StartedBy>> FindLauncher(EnvironmentLookup lookup) {
  std::optional<StartedBy> inner;
  for (const Launcher& launcher : kLaunchers) {
    if (!SaysRank(launcher, lookup)) continue;
    if (inner.has_value() && launcher.nesting == Nesting::kLast) continue;
    FT_ASSIGN_OR_RETURN(const std::optional<StartedBy> started, ReadRankOf(launcher, lookup));
    if (!started.has_value()) continue;
    if (!inner.has_value()) {
      inner = started;
    } else {
      FT_RETURN_IF_ERROR(CheckTogether(*inner, *started, lookup));
    }
  }
  return inner;
}

}  // namespace ft
