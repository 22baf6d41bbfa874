#include "tools/ftexec/check/check.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "tools/ftexec/check/disk.h"
#include "tools/ftexec/check/judge_ranks.h"
#include "tools/ftexec/check/preparation.h"
#include "tools/ftexec/check/trial.h"
#include "tools/ftexec/checkpoints.h"

namespace ft {
namespace {

// How far ranks can go together.
enum class Depth { kNothing, kFolder, kAll };

// What is in progress and has to end when a signal comes or a rank is lost.
class InProgress {
 public:
  void Set(PlanCommunicators* communicators) {
    const std::lock_guard<std::mutex> lock(mutex_);
    communicators_ = communicators;
  }
  void Set(Executor* executor) {
    const std::lock_guard<std::mutex> lock(mutex_);
    executor_ = executor;
  }
  void Cancel(const absl::Status& reason, Device* device) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (executor_ != nullptr) executor_->Cancel(reason);
    if (communicators_ != nullptr) communicators_->table().AbortAll(reason);
    if (device != nullptr) device->Cancel(reason);
  }

 private:
  std::mutex mutex_;
  PlanCommunicators* communicators_ = nullptr;
  Executor* executor_ = nullptr;
};

class JobCheck {
 public:
  JobCheck(const Flags& flags, const LaunchEnvironment& environment, const NcclSource& load_nccl,
           ProcessGuard& guard)
      : flags_(flags), environment_(environment), load_nccl_(load_nccl), guard_(guard) {}
  ~JobCheck() {
    guard_.OnCancel({});
    if (peers_.monitor != nullptr) peers_.monitor->OnLoss({});
  }

  absl::Status Run() {
    // A log's folder is made to see whether it can be.
    const std::vector<std::string> made = MissingFolders(flags_.log_dir);
    const absl::Cleanup remove = [&made] {
      for (auto each = made.rbegin(); each != made.rend(); ++each) rmdir(each->c_str());
    };
    prepared_ = PrepareCheck(flags_, environment_, load_nccl_);
    if (leads()) {
      findings_.push_back(JudgeLauncher(environment_));
      const std::vector<Finding> own = Merge({prepared_.facts.findings});
      findings_.insert(findings_.end(), own.begin(), own.end());
    }
    absl::Status status = Meet();
    if (status.ok()) status = CheckTogether();
    if (concluded_) return status;
    if (peers_.monitor != nullptr) status = TellPeers(*peers_.monitor, status);
    // What ends a check in its midst: a lost rank, a collective that failed.
    if (leads()) {
      std::erase_if(findings_, [](const Finding& finding) { return finding.check == "ranks"; });
      findings_.push_back(Failure("ranks", status));
      PrintOut(TableOf(findings_)).IgnoreError();
    }
    return status;
  }

 private:
  bool leads() const { return environment_.rank == 0; }

  absl::Status Meet() {
    const RendezvousOptions options{
        .fingerprint = "check=on",
        .label = absl::StrCat("a check of ", flags_.plan),
        .instruction_set =
            prepared_.device == nullptr ? "" : std::string(prepared_.device->best_instruction_set()),
        .gpu = prepared_.device == nullptr ? "" : prepared_.device->gpu(),
        .gpu_page_bytes = prepared_.device == nullptr ? 0 : prepared_.device->gpu_page_bytes(),
        .timeout = flags_.timeout};
    FT_ASSIGN_OR_RETURN(peers_.rendezvous, Rendezvous::Join(environment_, options));
    FT_ASSIGN_OR_RETURN(peers_.monitor, PeerMonitor::Start(*peers_.rendezvous));
    guard_.OnCancel([this](const absl::Status& reason) {
      in_progress_.Cancel(reason, prepared_.device == nullptr ? nullptr : &prepared_.device->device());
      peers_.monitor->Cancel(reason);
    });
    peers_.monitor->OnLoss([this](const absl::Status& reason) { guard_.PeerLost(reason); });
    agree_ = AgreeWithin(flags_.timeout);
    ReckonMemory(flags_, *peers_.rendezvous, prepared_);
    return absl::OkStatus();
  }

  AgreeFunction AgreeWithin(absl::Duration patience) {
    return [this, patience](std::string_view topic, uint64_t number, std::string payload, auto decide) {
      return peers_.monitor->Agree(topic, number, std::move(payload), decide, patience);
    };
  }

  absl::Status CheckTogether() {
    SettleDevice();
    FT_ASSIGN_OR_RETURN(const Depth depth, TellFacts());
    Trial trial(flags_, prepared_, peers_, agree_, AgreeWithin(std::max(kCheckpointPatience, flags_.timeout)),
                [this](Executor* executor) { in_progress_.Set(executor); });
    if (depth != Depth::kNothing) FT_RETURN_IF_ERROR(trial.TryFolder());
    if (depth == Depth::kAll) {
      FT_RETURN_IF_ERROR(Connect(flags_, prepared_.job, *prepared_.device, peers_));
      in_progress_.Set(&peers_.communicators);
      FT_RETURN_IF_ERROR(trial.TryLinks());
      FT_RETURN_IF_ERROR(trial.TryKernels());
    }
    if (depth != Depth::kNothing) trial.TryDisk();
    return Conclude(trial, depth);
  }

  // A rank whose machine knows no instruction set of the others cannot compute with them.
  void SettleDevice() {
    if (prepared_.device == nullptr) return;
    std::vector<PeerInfo> known = peers_.rendezvous->peers();
    // Of ranks that have no device nothing is known; they fail anyway.
    std::erase_if(known, [](const PeerInfo& peer) { return peer.instruction_set.empty(); });
    const absl::Status settled = prepared_.device->SettleInstructionSet(known);
    if (settled.ok()) return;
    prepared_.facts.findings.push_back(Failure("device", settled));
    prepared_.facts.has_device = false;
    prepared_.device = nullptr;
  }

  absl::StatusOr<Depth> TellFacts() {
    const auto decide = [this](const std::vector<std::string>& by_rank) -> absl::StatusOr<std::string> {
      std::vector<RankFacts> facts;
      for (const std::string& text : by_rank) {
        FT_ASSIGN_OR_RETURN(facts.emplace_back(), DecodeFacts(text));
      }
      return absl::StrCat(static_cast<int>(JudgeFacts(facts)));
    };
    FT_ASSIGN_OR_RETURN(const std::string answer, agree_("check: facts", 0, Encode(prepared_.facts), decide));
    int depth = 0;
    if (!absl::SimpleAtoi(answer, &depth)) return absl::InternalError("rank 0 checks something else");
    return static_cast<Depth>(depth);
  }

  // On rank 0.
  Depth JudgeFacts(const std::vector<RankFacts>& facts) {
    const std::vector<PeerInfo>& peers = peers_.rendezvous->peers();
    const auto all = [&facts](const auto& has) { return std::all_of(facts.begin(), facts.end(), has); };
    const bool have_jobs = all([](const RankFacts& of_rank) { return !of_rank.fingerprint.empty(); });
    const bool can_try = all([&facts](const RankFacts& of_rank) {
      return !of_rank.together.empty() && of_rank.together == facts[0].together;
    });
    const bool have_devices = all([](const RankFacts& of_rank) { return of_rank.has_device; });
    std::vector<std::vector<Finding>> by_rank;
    for (const RankFacts& of_rank : facts) by_rank.push_back(of_rank.findings);
    const std::vector<Finding> merged = Merge(by_rank);
    findings_ = {JudgeLauncher(environment_), JudgeHosts(peers)};
    if (have_jobs) findings_.push_back(JudgeSameJob(peers, facts));
    findings_.insert(findings_.end(), merged.begin(), merged.end());
    if (!can_try) return Depth::kNothing;
    if (!have_devices) return Depth::kFolder;
    const bool cuda = !prepared_.device->is_cpu();
    findings_.push_back(JudgeDevices(peers, facts, std::string(prepared_.device->instruction_set())));
    const absl::Status gpus = prepared_.device->CheckGpus(peers);
    if (!gpus.ok()) findings_.push_back(Failure("GPUs", gpus));
    if (!cuda) findings_.push_back(JudgeThreads(peers, facts));
    findings_.push_back(JudgeMemory(peers, facts));
    const bool has_memory = findings_.back().verdict != Verdict::kFailure;
    findings_.push_back(JudgeSharedMemory(peers, facts));
    const bool has_shm = findings_.back().verdict != Verdict::kFailure;
    if (prepared_.job.plan().has_target())
      findings_.push_back(JudgeTarget(prepared_.job.plan().target(), cuda, peers));
    return has_memory && has_shm && gpus.ok() ? Depth::kAll : Depth::kFolder;
  }

  // The last agreement: rank 0 prints before any rank ends, since a launcher may end the others then.
  absl::Status Conclude(const Trial& trial, Depth depth) {
    const auto decide = [&](const std::vector<std::string>& by_rank) -> absl::StatusOr<std::string> {
      std::vector<RankResults> results;
      for (const std::string& text : by_rank) {
        FT_ASSIGN_OR_RETURN(results.emplace_back(), DecodeResults(text));
      }
      FT_RETURN_IF_ERROR(JudgeResults(trial, depth, results));
      FT_RETURN_IF_ERROR(PrintOut(TableOf(findings_)));
      const absl::Status status = StatusOf(findings_);
      return absl::StrCat(static_cast<int>(status.code()), " ", status.message());
    };
    FT_ASSIGN_OR_RETURN(const std::string answer,
                        agree_("check: results", 0, Encode(trial.results()), decide));
    concluded_ = true;
    const std::pair<std::string, std::string> parts = absl::StrSplit(answer, absl::MaxSplits(' ', 1));
    int code = 0;
    if (!absl::SimpleAtoi(parts.first, &code)) return absl::InternalError("rank 0 checks something else");
    const absl::Status goodbye = peers_.monitor->Goodbye();
    if (code == 0) return goodbye;
    return absl::Status(static_cast<absl::StatusCode>(code), leads() ? parts.second : OwnFailure(trial));
  }

  // On rank 0.
  absl::Status JudgeResults(const Trial& trial, Depth depth, const std::vector<RankResults>& results) {
    std::vector<std::vector<Finding>> by_rank;
    std::vector<double> compute;
    for (const RankResults& of_rank : results) {
      by_rank.push_back(of_rank.findings);
      compute.push_back(of_rank.compute_seconds);
      if (of_rank.link_seconds.size() != trial.tries().size())
        return absl::InternalError("ranks check different links of the plan");
    }
    const std::vector<Finding> merged = Merge(by_rank);
    findings_.insert(findings_.end(), merged.begin(), merged.end());
    if (depth != Depth::kAll) {
      findings_.push_back(Warning("links", "not measured, nor were kernels tried", "",
                                  "put right what failed, and check again"));
      return absl::OkStatus();
    }
    JudgeLinks(trial, results);
    const bool ran = std::none_of(merged.begin(), merged.end(), [](const Finding& finding) {
      return finding.check == "kernels" && finding.verdict == Verdict::kFailure;
    });
    if (ran) findings_.push_back(JudgeSpeed(peers_.rendezvous->peers(), compute));
    return absl::OkStatus();
  }

  void JudgeLinks(const Trial& trial, const std::vector<RankResults>& results) {
    const Job& job = prepared_.job;
    const bool comparable =
        job.plan().has_target() && job.plan().target().cuda() == !prepared_.device->is_cpu();
    const std::vector<std::string> nodes = NodesOf(peers_.rendezvous->peers());
    if (trial.uses().empty()) findings_.push_back(Ok("links", "the plan sends nothing between these ranks"));
    for (size_t first = 0; first < trial.tries().size();) {
      size_t last = first;
      std::vector<std::vector<double>> seconds;
      for (; last < trial.tries().size() && trial.tries()[last].use == trial.tries()[first].use; ++last) {
        std::vector<double>& by_rank = seconds.emplace_back();
        for (const RankResults& of_rank : results) by_rank.push_back(of_rank.link_seconds[last]);
      }
      const LinkUse& use = trial.uses()[trial.tries()[first].use];
      const bool is_wrong = std::any_of(findings_.begin(), findings_.end(),
                                        [&](const Finding& finding) { return finding.check == NameOf(use); });
      if (!is_wrong) {
        findings_.push_back(
            JudgeLink({.use = use,
                       .tries = absl::MakeConstSpan(trial.tries()).subspan(first, last - first),
                       .seconds = seconds,
                       .groups = GroupsOf(use.axis),
                       .layout = LayoutOnNodes(job.bound.mesh, use.axis, nodes),
                       .target = comparable ? &job.plan().target() : nullptr}));
      }
      first = last;
    }
  }

  // By rank, the first rank of its group.
  std::vector<int> GroupsOf(proto::Axis axis) const {
    std::vector<int> groups;
    for (int rank = 0; rank < environment_.world_size; ++rank)
      groups.push_back(AxisGroup(prepared_.job.bound.mesh, axis, rank).front());
    return groups;
  }

  // What a rank other than 0 says on its own: what failed here.
  std::string OwnFailure(const Trial& trial) const {
    for (const std::vector<Finding>* findings : {&prepared_.facts.findings, &trial.results().findings}) {
      for (const Finding& finding : *findings) {
        if (finding.verdict == Verdict::kFailure)
          return absl::StrCat("the check of ", finding.check, " failed: ", finding.found);
      }
    }
    return "";
  }

  const Flags& flags_;
  const LaunchEnvironment& environment_;
  const NcclSource& load_nccl_;
  ProcessGuard& guard_;
  PreparedCheck prepared_;
  InProgress in_progress_;
  Peers peers_;
  AgreeFunction agree_;
  std::vector<Finding> findings_;  // on rank 0, of all ranks
  bool concluded_ = false;         // all ranks know how it ended
};

}  // namespace

absl::Status CheckJob(const Flags& flags, const LaunchEnvironment& environment, const NcclSource& load_nccl,
                      ProcessGuard& guard) {
  return JobCheck(flags, environment, load_nccl, guard).Run();
}

}  // namespace ft
