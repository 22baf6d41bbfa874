#include "tools/ftexec/main.h"

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "fmt/format.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/rendezvous/launch_environment.h"
#include "tools/ftexec/error_file.h"
#include "tools/ftexec/flags.h"
#include "tools/ftexec/job.h"
#include "tools/ftexec/process_guard.h"
#include "tools/ftexec/rank_log.h"
#include "tools/ftexec/simulate.h"
#include "tools/ftexec/train.h"

namespace ft {
namespace {

std::string Prefix(const LaunchEnvironment& environment) {
  return environment.world_size == 1 ? "ftexec: " : fmt::format("ftexec: rank {}: ", environment.rank);
}

absl::Status RunRank(const Flags& flags, const LaunchEnvironment& environment, const NcclSource& load_nccl,
                     ProcessGuard& guard) {
  FT_ASSIGN_OR_RETURN(const Job job, PrepareJob(flags, environment));
  return Train(flags, job, load_nccl, guard);
}

int Report(const absl::Status& status, const std::string& prefix, const LaunchEnvironment& environment,
           const std::string& log_dir) {
  if (status.ok()) return kExitOk;
  const std::string message = OneLine(status.message());
  PrintError(prefix + message);
  RankLog::Append(log_dir, environment.rank, prefix + message + "\n");
  WriteErrorFile(environment.error_file, absl::StatusCodeToString(status.code()), message);
  return ExitStatus(status);
}

int Run(const Flags& flags, const NcclSource& load_nccl) {
  if (flags.device == DeviceKind::kNull) return Report(Simulate(flags), "ftexec: ", {}, "");
  const absl::StatusOr<LaunchEnvironment> environment = LaunchEnvironmentOfProcess();
  if (!environment.ok()) return Report(environment.status(), "ftexec: ", {}, "");
  ProcessGuard guard;
  guard.set_prefix(Prefix(*environment));
  const absl::Status status = RunRank(flags, *environment, load_nccl, guard);
  guard.RaiseAgain();  // what the run made of the signal does not matter
  return Report(status, Prefix(*environment), *environment, flags.log_dir);
}

}  // namespace

int Main(int argc, char** argv, const NcclSource& load_nccl) {
  HoldStandardDescriptors();
  Flags flags;
  const int usage = ParseFlags(argc, argv, flags);
  return usage >= 0 ? usage : Run(flags, load_nccl);
}

}  // namespace ft
