#include "tools/ftexec/calibrate/calibrate.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fmt/format.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/output_check.h"
#include "runtime/base/printable.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/target.h"
#include "runtime/plan/target_text.h"
#include "tools/ftexec/calibrate/machine.h"
#include "tools/ftexec/calibrate/nccl_log.h"
#include "tools/ftexec/calibrate/plan_kernels.h"
#include "tools/ftexec/calibrate/session.h"
#include "tools/ftexec/job.h"

namespace ft {
namespace {

constexpr double kSecondsOfMachine = 120, kSecondsOfPlan = 20;
constexpr uint64_t kSomeBytes = 4096;

// What a file is called without folder and ending, as targets are by default.
std::string StemOf(const std::string& path) {
  const std::string last = path.substr(path.rfind('/') + 1);
  const std::string stem = OneLine(last.substr(0, last.rfind('.')), kLongestTargetName);
  return stem.empty() ? "machine" : stem;
}

// What else is not as usual, and may change what is measured: "; with --tf32".
std::string Circumstances(const Flags& flags) {
  std::vector<std::string> all;
  if (flags.emulate_link.has_value())
    all.push_back(fmt::format("--emulate-link={:g},{:g}", flags.emulate_link->gigabits_per_s,
                              flags.emulate_link->latency_us));
  if (flags.kernels == Kernels::kReference) all.emplace_back("--kernels=reference");
  if (flags.tf32) all.emplace_back("--tf32=on");
  if (flags.deterministic) all.emplace_back("--deterministic=on");
  if (flags.comm_backend != CollectiveBackend::kAuto)
    all.push_back(fmt::format("--comm-backend={}", Name(flags.comm_backend)));
  if (flags.attention == cuda::AttentionChoice::kOwn) all.emplace_back("--attention=own");
  return all.empty() ? "" : "; with " + absl::StrJoin(all, ", ");
}

// Ranks that measure the same.
std::string FingerprintOf(const Flags& flags, const Job& job) {
  return absl::StrCat("calibrate=", flags.plan.empty() ? "machine" : PlanHashText(job.file.hash),
                      " mesh=", flags.plan.empty() ? "" : MeshText(job.bound.mesh),
                      " seconds=", flags.calibrate_seconds, " threads=", job.threads,
                      " device=", static_cast<int>(flags.device), Circumstances(flags));
}

absl::Status TakeThreads(const Flags& flags, Job& job) {
  for (const Preparation& preparation : Preparations())
    if (preparation.name == "threads") return preparation.run(flags, job);
  return absl::InternalError("nothing chooses threads");
}

absl::Status TakePlan(const Flags& flags, Job& job) {
  const LaunchEnvironment& environment = job.environment;
  const bool elsewhere = flags.world_size > 0;  // ranks that it is reckoned for, not those that are here
  FT_RETURN_IF_ERROR(LoadPlan(flags, elsewhere ? flags.world_size : environment.world_size,
                              elsewhere ? 0 : environment.local_world_size, job));
  const bool cuda = flags.device == DeviceKind::kCuda;
  if (job.plan().has_target() && job.plan().target().cuda() == cuda) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("'{}' was compiled for no {}: measure the machine (ftexec --calibrate=machine.yaml) and "
                  "compile it with "
                  "--target=machine.yaml, so that links and what else is no kernel of the plan are known",
                  flags.plan, cuda ? "GPU" : "CPU"));
}

// That the rest of the file was measured otherwise, and that kernels were lost.
std::string NotesOn(const Target& before, const PlanKernels& now) {
  const Target::Measured& measured = now.target.measured();
  std::vector<std::string> notes;
  if (measured.timed_ranks_on_node() != 0)
    notes.push_back(fmt::format(
        "kernels are timed with {}, the rest of {} was measured with {}: what is predicted is an estimate",
        TimedLayoutText(measured), before.name(), LayoutText(measured)));
  if (now.left_out > 0)
    notes.push_back(fmt::format("{} kernels of other plans that {} has were timed with {} and are left out",
                                now.left_out, before.name(), TimedLayoutText(before.measured())));
  if (now.without_room > 0)
    notes.push_back(
        fmt::format("{} kernels are left out, of other plans first and the shortest first: a machine file "
                    "has room for {} KiB",
                    now.without_room, kMostTargetBytes >> 10));
  return absl::StrJoin(notes, "; ");
}

class Calibration {
 public:
  // `links`: of other machines, in the place of those that are here.
  Calibration(const Flags& flags, std::vector<Target::Collective> links, CalibrationSession& session)
      : flags_(flags), links_(std::move(links)), session_(session) {}

  absl::Status Run() {
    if (flags_.plan.empty()) {
      FT_ASSIGN_OR_RETURN(target_, MeasureMachine(session_, SecondsOr(kSecondsOfMachine)));
    } else {
      const Job& job = session_.job();
      FT_ASSIGN_OR_RETURN(PlanKernels kernels,
                          TimePlanKernels(session_, job.plan(), job.bound, SecondsOr(kSecondsOfPlan)));
      kernel_notes_ = NotesOn(job.plan().target(), kernels);
      target_ = std::move(kernels.target);
      notes_.kernels = std::move(kernels.titles);
    }
    TakeCollectives(links_, target_);
    target_.set_name(StemOf(flags_.calibrate));
    FT_RETURN_IF_ERROR(VerifyTarget(target_));
    return session_.job().rank() == 0 ? Write() : absl::OkStatus();
  }

 private:
  double SecondsOr(double usual) const {
    return flags_.calibrate_seconds > 0 ? flags_.calibrate_seconds : usual;
  }

  absl::Status Write() {
    notes_.source = absl::StrCat("measured by ftexec --calibrate with ", TimedLayoutText(target_.measured()),
                                 Circumstances(flags_), links_.empty() ? "" : "; links by nccl-tests");
    FT_RETURN_IF_ERROR(WriteFileAtomically(flags_.calibrate, TargetText(target_, notes_)));
    const JustMeasured what = flags_.plan.empty() ? JustMeasured::kMachine : JustMeasured::kKernels;
    for (const std::string& doubt : {DoubtOf(target_, what), kernel_notes_})
      if (!doubt.empty()) PrintError("ftexec: note: " + doubt);
    return PrintOut(fmt::format("wrote '{}': {}\n", flags_.calibrate, notes_.source));
  }

  const Flags& flags_;
  const std::vector<Target::Collective> links_;
  CalibrationSession& session_;
  Target target_;
  TargetNotes notes_;
  std::string kernel_notes_;
};

}  // namespace

absl::Status Calibrate(const Flags& flags, const LaunchEnvironment& environment, const NcclSource& load_nccl,
                       ProcessGuard& guard) {
  Job job;
  job.environment = environment;
  FT_RETURN_IF_ERROR(TakeThreads(flags, job));
  if (!flags.plan.empty()) FT_RETURN_IF_ERROR(TakePlan(flags, job));
  std::vector<Target::Collective> links;
  if (environment.rank == 0) {
    FT_ASSIGN_OR_RETURN(links, ReadNcclLogs(flags.calibrate_links));
    FT_RETURN_IF_ERROR(CheckAtomicOutput(flags.calibrate, kSomeBytes));
  }
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<CalibrationSession> session,
                      CalibrationSession::Meet(flags, job, load_nccl, guard, FingerprintOf(flags, job)));
  const absl::Status status = session->Tell(Calibration(flags, std::move(links), *session).Run());
  if (!status.ok()) return status;
  return session->Goodbye();
}

}  // namespace ft
