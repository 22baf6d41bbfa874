#include "tools/ftexec/rank_run.h"

#include <utility>

#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/liveness/agreement.h"
#include "tools/ftexec/header.h"
#include "tools/ftexec/thread_room.h"

namespace ft {

RankRun::RankRun(const Flags& flags, Job& job, RankDevice& device, Peers& peers, ProcessGuard& guard,
                 FailureReport& report)
    : flags_(flags), job_(job), device_(device), peers_(peers), guard_(guard), report_(report) {
  report_.activity().Enter(Activity::kOpening);
}

RankRun::~RankRun() {
  report_.Detach();
  guard_.OnWish({});
  guard_.OnCancel({});
  peers_.monitor->OnLoss({});
}

absl::Status RankRun::CreateExecutor() {
  auto executor =
      Executor::Create(job_.plan(), job_.bound, device_.device(), peers_.communicators.table(), job_.rank(),
                       {.record = flags_.cuda_graph,
                        .on_failure = [this](const absl::Status& s) { guard_.Failed(s); },
                        .generated_kernels = flags_.kernels == Kernels::kGenerated});
  if (absl::IsResourceExhausted(executor.status()) && job_.rank() == 0) PrintArena(job_);
  FT_RETURN_IF_ERROR(executor.status());
  executor_ = *std::move(executor);
  report_.Attach(job_, *executor_);
  guard_.OnCancel([this](const absl::Status& reason) {
    report_.Hold();
    executor_->Cancel(reason);
    peers_.monitor->Cancel(reason);
  });
  peers_.monitor->OnLoss([this](const absl::Status& reason) { guard_.PeerLost(reason); });
  peers_.monitor->wishes().set_timeout(flags_.timeout);
  return absl::OkStatus();
}

void RankRun::Say(const std::string& line) {
  if (job_.rank() == 0) PrintOut(line + "\n").IgnoreError();
}

absl::Status RunTogether(const Flags& flags, Job& job, const NcclSource& load_nccl, ProcessGuard& guard,
                         FailureReport& report, MakeRankRun make) {
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<RankDevice> device, RankDevice::Open(flags, job, load_nccl));
  FT_RETURN_IF_ERROR(ProbeTeam(job, *device));
  Peers peers;
  FT_RETURN_IF_ERROR(Meet(flags, job, *device, report, peers));
  absl::Status status;
  bool all_ranks_know = true;
  {
    const std::unique_ptr<RankRun> run = make(*device, peers);
    status = run->Execute();
    all_ranks_know = status.ok() || run->diverged() || IsKnownToAll(status);
    if (!all_ranks_know) status = TellPeers(*peers.monitor, status);
    report.Write(status, guard.signal());
    if (!status.ok()) run->KeepTrace();
  }
  if (!all_ranks_know) return status;
  report.activity().Enter(Activity::kEnding);
  const absl::Status goodbye = peers.monitor->Goodbye();
  return status.ok() ? goodbye : status;  // what ended the run matters more
}

}  // namespace ft
