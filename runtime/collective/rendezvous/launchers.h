// Launchers that do not set RANK and WORLD_SIZE but say the same in variables of their own: a table, one row
// each, and which row started this process.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/collective/rendezvous/environment_variables.h"

namespace ft {

// How rank 0's host is found where MASTER_ADDR does not say it.
enum class MasterSource {
  kStep,        // the first node of Slurm's step
  kOpenMpi,     // the host of mpirun, in a Slurm allocation its first node
  kAllocation,  // in a Slurm allocation its first node
  kGiven,       // not at all: MASTER_ADDR has to be set
};

enum class Nesting {
  kInner,  // ranks that it starts are started by nobody else
  kOuter,  // may have started the daemons of an inner one, whose ranks inherit its variables
  kLast,   // says less than the others, and counts where none of them is
};

// Variables that a launcher has none of are null.
struct Launcher {
  const char* name;                       // who starts the processes, for messages
  const char* rank;                       // of all processes, from 0
  std::array<const char*, 2> world_size;  // the first that is set counts; two that are set have to agree
  const char* local_rank;                 // on this host, from 0
  const char* local_world_size;           // ranks on this host
  const char* node;                       // number of this host
  // One of these is set as well, or it was not this launcher that started the process.
  std::array<const char*, 2> beside;
  std::array<const char*, 2> job;  // the first that is set tells runs on one host apart
  MasterSource master;
  Nesting nesting;
  const char* pass_on;  // how the user gives all ranks MASTER_ADDR=HOST
};

absl::Span<const Launcher> Launchers();

// A process that one of the launchers started.
struct StartedBy {
  const Launcher* launcher;
  int rank;
  int world_size;
  const char* world_size_variable;  // the one of the launcher's that is set
};

// For a process without RANK. Where several launchers left their variables the innermost counts: mpirun in a
// Slurm step, whose tasks are mpirun's daemons. None: no launcher of the table says which rank this is.
// Errors: InvalidArgument, one line, when variables are nonsense or contradict each other.
absl::StatusOr<std::optional<StartedBy>> FindLauncher(EnvironmentLookup lookup);

// The launcher's variable that is set, with its value: "SLURM_STEP_NUM_TASKS='4'".
std::string WorldSizeSetting(const StartedBy& started, EnvironmentLookup lookup);

}  // namespace ft
