#include "tools/ftexec/main.h"

#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "fmt/format.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/printable.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/liveness/agreement.h"
#include "runtime/collective/rendezvous/launch_environment.h"
#include "tools/ftexec/calibrate/calibrate.h"
#include "tools/ftexec/check/check.h"
#include "tools/ftexec/error_file.h"
#include "tools/ftexec/failure_report.h"
#include "tools/ftexec/flags.h"
#include "tools/ftexec/gpu_sharing.h"
#include "tools/ftexec/inference.h"
#include "tools/ftexec/job.h"
#include "tools/ftexec/outputs.h"
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
                     ProcessGuard& guard, FailureReport& report) {
  if (flags.check) return CheckJob(flags, environment, load_nccl, guard);
  if (flags.calibrates()) return Calibrate(flags, environment, load_nccl, guard);
  FT_ASSIGN_OR_RETURN(Job job, PrepareJob(flags, environment));
  report.SetPlan(job, flags.plan);
  if (!flags.trains()) return Infer(flags, job, load_nccl, guard, report);
  return Train(flags, job, load_nccl, guard, report);
}

// Ours are values; those of libraries, when the system gives them no thread or no memory, are exceptions.
absl::Status CatchAll(absl::FunctionRef<absl::Status()> body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory; allow more (ulimit -v, or the container's limit)");
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

int Report(const absl::Status& status, const std::string& prefix, const LaunchEnvironment& environment,
           const std::string& log_dir) {
  if (status.ok()) return kExitOk;
  const std::string message = OneLine(std::string(status.message()));
  // What all ranks were told, one says for all, each log has and each launcher hears. Without a message
  // another rank says it.
  if (!message.empty() && (environment.rank == 0 || !IsKnownToAll(status))) PrintError(prefix + message);
  RankLog::Append(log_dir, environment.rank, prefix + message + "\n");
  WriteErrorFile(environment.error_file, absl::StatusCodeToString(status.code()), message);
  return ExitStatus(status);
}

int Run(const Flags& flags, const NcclSource& load_nccl) {
  if (flags.device == DeviceKind::kNull)
    return Report(CatchAll([&] { return flags.check ? CheckSimulated(flags) : Simulate(flags); }),
                  "ftexec: ", {}, "");
  const absl::StatusOr<LaunchEnvironment> environment = LaunchEnvironmentOfProcess();
  if (!environment.ok()) return Report(environment.status(), "ftexec: ", {}, "");
  // A check leaves no file behind, so it adds nothing to a log; nor does a run that is refused for its place.
  const std::string log_dir = flags.check || LiesAmongData(flags.log_dir, flags) ? "" : flags.log_dir;
  FailureReport report(log_dir, *environment, Prefix(*environment));
  const absl::StatusOr<std::unique_ptr<ProcessGuard>> guard = ProcessGuard::Start();
  if (!guard.ok()) return Report(guard.status(), Prefix(*environment), *environment, log_dir);
  (*guard)->set_prefix(Prefix(*environment));
  if (!environment->remark.empty()) PrintError(Prefix(*environment) + OneLine(environment->remark));
  (*guard)->set_grace(flags.grace);
  (*guard)->OnEnd([&](const absl::Status& reason, int signal) { report.Write(reason, signal); });
  const absl::Status status = CatchAll([&]() -> absl::Status {
    FT_RETURN_IF_ERROR(report.Start());
    return RunRank(flags, *environment, load_nccl, **guard, report);
  });
  report.Write(status, (*guard)->signal());
  (*guard)->RaiseAgain();  // what the run made of the signal does not matter
  if (status.ok() && (*guard)->ended_as_wished()) return kExitEndedAsWished;
  return Report(status, IsKnownToAll(status) ? "ftexec: " : Prefix(*environment), *environment, log_dir);
}

}  // namespace

int Main(int argc, char** argv, const NcclSource& load_nccl) {
  HoldStandardDescriptors();
  LimitedFilesAreErrors();
  Flags flags;
  const int usage = ParseFlags(argc, argv, flags);
  if (usage >= 0) return usage;
  TellNcclOfSharing(flags);
  return Run(flags, load_nccl);
}

}  // namespace ft
