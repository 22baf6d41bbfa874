#include "tools/ftexec/check/trial.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "fmt/format.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/folder.h"
#include "runtime/checkpoint/state/held_folder.h"
#include "runtime/checkpoint/state/plan_state.h"
#include "runtime/executor/resume.h"
#include "tools/ftexec/check/disk.h"
#include "tools/ftexec/checkpoints.h"
#include "tools/ftexec/run_manifest.h"
#include "tools/ftexec/shared_folder.h"

namespace ft {
namespace {

// More would say nothing new of a link.
constexpr uint64_t kMostLinkBytes = uint64_t{256} << 20;

constexpr char kMeant[] = "nothing, if that is meant";

constexpr double kSecondsOfForwardPasses = 0.5;
constexpr double kMostForwardPasses = 200;

// Nanoseconds in which the rank itself computed, without those in which it waited for others and for copies.
absl::StatusOr<double> SecondsOfRun(Executor& executor, int program) {
  const absl::Time begin = absl::Now();
  const int64_t exposed = executor.exposed_ns();
  FT_RETURN_IF_ERROR(executor.Run(program));
  const double waited = static_cast<double>(executor.exposed_ns() - exposed) * 1e-9;
  return std::max(0.0, absl::ToDoubleSeconds(absl::Now() - begin) - waited);
}

}  // namespace

absl::StatusOr<bool> Trial::AllOk(const char* check, const absl::Status& status) {
  if (!status.ok()) results_.findings.push_back(Failure(check, status));
  const auto decide = [](const std::vector<std::string>& by_rank) -> absl::StatusOr<std::string> {
    const bool all =
        std::all_of(by_rank.begin(), by_rank.end(), [](const auto& text) { return text == "ok"; });
    return std::string(all ? "ok" : "not ok");
  };
  FT_ASSIGN_OR_RETURN(const std::string answer,
                      agree_(absl::StrCat("check: ", check), 0, status.ok() ? "ok" : "not ok", decide));
  return answer == "ok";
}

absl::Status Trial::TryFolder() {
  if (!flags_.saves()) return absl::OkStatus();
  const std::string& folder = flags_.checkpoint_dir;
  std::vector<std::string> made;
  const auto make = [&]() -> absl::Status {
    made = MissingFolders(folder);
    FT_RETURN_IF_ERROR(MakeFolders(folder));
    return HeldFolder::Take(folder).status();  // for a moment: whether another run has it
  };
  const absl::Status status = CheckSharedFolder(
      {.option = "--checkpoint-dir", .folder = folder, .mark = ".checked-by-all-ranks", .make = make},
      job().rank(), agree_on_files_);
  for (auto each = made.rbegin(); each != made.rend(); ++each) rmdir(each->c_str());
  FT_RETURN_IF_ERROR(peers_.monitor->status());
  // All ranks have the same answer, be it an error: rank 0 says it for them.
  if (job().rank() != 0) return absl::OkStatus();
  results_.findings.push_back(status.ok()
                                  ? Ok("checkpoints", folder + " is seen, and can be written, by all ranks")
                                  : Failure("checkpoints", status));
  return absl::OkStatus();
}

absl::Status Trial::TryLinks() {
  uses_ = LinkUses(job().plan(), job().bound);
  // No more memory than the run takes itself.
  tries_ = LinkTries(uses_, std::min(kMostLinkBytes, job().bound.arena_bytes() / 2));
  return MeasureLinks(prepared_.device->device(), peers_.communicators.table(), uses_, tries_, agree_,
                      results_);
}

absl::Status Trial::TryKernels() {
  auto executor = Executor::Create(job().plan(), job().bound, prepared_.device->device(),
                                   peers_.communicators.table(), job().rank(), {.record = false});
  FT_ASSIGN_OR_RETURN(const bool all, AllOk("kernels", executor.status()));
  if (!all) return absl::OkStatus();
  on_executor_(executor->get());
  const absl::Cleanup forget = [this] { on_executor_(nullptr); };
  std::string made =
      fmt::format("all of the plan's are made; arena {}, host arena {}",
                  BytesText((*executor)->arena_bytes()), BytesText((*executor)->host_arena_bytes()));
  const uint64_t used = prepared_.device->is_cpu() ? 0 : prepared_.device->device().used_bytes();
  if (used > 0) absl::StrAppend(&made, ", in use on the device ", BytesText(used));
  results_.findings.push_back(Ok("kernels", std::move(made)));
  FT_RETURN_IF_ERROR(TryResume(**executor));
  return TrySpeed(**executor);
}

absl::Status Trial::TryResume(const Executor& executor) {
  if (flags_.resume.empty()) return absl::OkStatus();
  const auto resume = [&]() -> absl::StatusOr<Finding> {
    FT_ASSIGN_OR_RETURN(const StateLayout state, StateOfPlan(job().plan(), job().bound.mesh));
    FT_ASSIGN_OR_RETURN(const Resumed resumed, Resume(ResumeRequestOf(flags_, job().plan()), job().plan(),
                                                      state, executor, agree_on_files_));
    std::string text = absl::StrCat(absl::StrJoin(resumed.notes, "; "), resumed.notes.empty() ? "" : "; ");
    if (resumed.reader == nullptr) {
      text += "no checkpoint is there to go on from: the run begins";
      return resumed.notes.empty() ? Ok("resume", text) : Warning("resume", text, "", kMeant);
    }
    const proto::Manifest& manifest = resumed.reader->manifest();
    TrainingPosition position = PositionOf(manifest);
    std::vector<std::string> differences;
    if (job().data != nullptr) {  // else that is what failed
      FT_ASSIGN_OR_RETURN(differences,
                          SettleResumed(flags_, manifest, *prepared_.device, prepared_.job, position));
    }
    first_step_ = position.steps;
    absl::StrAppend(&text, "'", resumed.reader->folder(), "' after ", position.steps,
                    " steps, all of its checksums agree");
    if (!differences.empty()) absl::StrAppend(&text, "; not as it was: ", absl::StrJoin(differences, ", "));
    return resumed.notes.empty() && differences.empty() ? Ok("resume", text)
                                                        : Warning("resume", text, "", kMeant);
  };
  absl::StatusOr<Finding> finding = resume();
  FT_RETURN_IF_ERROR(peers_.monitor->status());
  // Without a checkpoint the rate's schedule is that of the flags.
  if (finding.ok() && first_step_ == 0 && !job().lr_status.ok()) finding = job().lr_status;
  if (!finding.ok())
    results_.findings.push_back(Failure("resume", finding.status()));
  else if (job().rank() == 0)  // it is the same for all ranks
    results_.findings.push_back(*std::move(finding));
  return absl::OkStatus();
}

// The tensors are zero, or those of a checkpoint: what is computed does not matter, nor does it change
// anything.
absl::Status Trial::TrySpeed(Executor& executor) {
  const absl::StatusOr<int> program = executor.FindProgram("eval_step");
  if (!program.ok()) return absl::OkStatus();
  FT_RETURN_IF_ERROR(executor.Run(*program));  // pages are touched, threads started
  const absl::Time begin = absl::Now();
  FT_ASSIGN_OR_RETURN(double best, SecondsOfRun(executor, *program));
  const double whole = absl::ToDoubleSeconds(absl::Now() - begin);
  const auto decide = [](const std::vector<std::string>& by_rank) -> absl::StatusOr<std::string> {
    double slowest = 1e-6;
    for (const std::string& text : by_rank) {
      double seconds = 0;
      if (absl::SimpleAtod(text, &seconds)) slowest = std::max(slowest, seconds);
    }
    return absl::StrCat(
        static_cast<int64_t>(std::clamp(kSecondsOfForwardPasses / slowest, 1.0, kMostForwardPasses)));
  };
  FT_ASSIGN_OR_RETURN(const std::string answer, agree_("check: speed", 0, absl::StrCat(whole), decide));
  int64_t passes = 1;
  if (!absl::SimpleAtoi(answer, &passes)) return absl::InternalError("rank 0 checks something else");
  for (int64_t pass = 0; pass < passes; ++pass) {
    FT_ASSIGN_OR_RETURN(const double seconds, SecondsOfRun(executor, *program));
    best = std::min(best, seconds);
  }
  results_.compute_seconds = best;
  return absl::OkStatus();
}

void Trial::TryDisk() {
  if (job().rank() != 0 && flags_.log_dir.empty()) return;  // it writes what rank 0 counts
  results_.findings.push_back(CheckDisk(flags_, job(), peers_.rendezvous->one_host(), first_step_));
}

}  // namespace ft
