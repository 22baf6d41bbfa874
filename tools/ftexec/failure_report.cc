#include "tools/ftexec/failure_report.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "fmt/format.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/content_hash.h"
#include "runtime/base/monotonic_clock.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/printable.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/thread.h"
#include "runtime/collective/liveness/peer_links.h"
#include "runtime/collective/missing_ranks.h"
#include "runtime/collective/rendezvous/host_identity.h"
#include "runtime/plan/plan_file.h"
#include "tools/ftexec/reported_position.h"

namespace ft {
namespace {

// How long a run that has failed waits for its report to be written.
constexpr absl::Duration kForTheReport = absl::Seconds(3);

ReportedActivity ReportedOf(const ActivityRecord& record) {
  const ActivityRecord::State at = record.Read();
  if (at.activity == Activity::kNone) return {};
  ReportedActivity reported;
  reported.name = std::string(Name(at.activity));
  (IsAfterSteps(at.activity) ? reported.steps_done : reported.step) = at.step;
  reported.micro_step = at.micro_step;
  reported.seconds = static_cast<double>(MonotonicNs() - at.since_ns) * 1e-9;
  return reported;
}

}  // namespace

// Writes one text. Shared with its thread, which may be all that is left of it.
class FailureReport::Writer {
 public:
  // `make_folder`: when it is not there.
  Writer(std::string path, bool make_folder) : path_(std::move(path)), make_folder_(make_folder) {}

  static absl::Status Start(const std::shared_ptr<Writer>& writer) {
    absl::StatusOr<std::thread> thread = StartThread("to report failures", [writer] { writer->Loop(); });
    if (!thread.ok()) return thread.status();
    writer->thread_ = *std::move(thread);
    return absl::OkStatus();
  }

  // Whether it was done in time, and how it went.
  absl::Status Write(std::string text) {
    std::unique_lock lock(mutex_);
    text_ = std::move(text);
    changed_.notify_all();
    return Await(lock);
  }
  absl::Status Await() {
    std::unique_lock lock(mutex_);
    return Await(lock);
  }

  // Ends the thread, or lets it go.
  void End() {
    bool stuck = false;
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      stuck = text_.has_value() && !done_;
    }
    changed_.notify_all();
    if (!thread_.joinable()) return;
    if (stuck) {
      thread_.detach();
    } else {
      thread_.join();
    }
  }

 private:
  absl::Status Await(std::unique_lock<std::mutex>& lock) {
    const bool in_time =
        changed_.wait_for(lock, absl::ToChronoMilliseconds(kForTheReport), [this] { return done_; });
    return in_time ? status_ : absl::DeadlineExceededError("the file system does not answer");
  }

  void Loop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return text_.has_value() || ending_; });
    if (!text_.has_value()) return;
    const std::string text = *text_;
    lock.unlock();
    const absl::Status status = Perform(text);
    lock.lock();
    status_ = status;
    done_ = true;
    changed_.notify_all();
  }

  absl::Status Perform(const std::string& text) const {
    const std::string folder = FolderOf(path_);
    struct stat info;
    if (!make_folder_ && stat(folder.c_str(), &info) != 0) return absl::OkStatus();
    if (make_folder_ && mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
      return PosixError(errno, "make the folder", folder);
    return WriteFileAtomically(path_, text);
  }

  const std::string path_;
  const bool make_folder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::string> text_;
  absl::Status status_;
  bool done_ = false;
  bool ending_ = false;
  std::thread thread_;  // of End alone
};

FailureReport::FailureReport(std::string folder, const LaunchEnvironment& environment, std::string prefix)
    : folder_(std::move(folder)), prefix_(std::move(prefix)) {
  activity_.Enter(Activity::kPreparing);
  known_.rank = environment.rank;
  known_.world_size = environment.world_size;
  known_.local_rank = environment.local_rank;
  known_.node = environment.group_rank;
  known_.host = Hostname();
  known_.pid = getpid();
  known_.attempt = environment.restart_count;
  known_.run_id = environment.run_id;
  known_.started = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
}

FailureReport::~FailureReport() {
  if (writer_ != nullptr) writer_->End();
}

absl::Status FailureReport::Start() {
  if (folder_.empty()) return absl::OkStatus();
  const std::string path = folder_ + "/" + RankReportName(known_.rank, known_.attempt);
  // A run of one rank that is refused at once leaves no folder: there are no other ranks to be compared with.
  auto writer = std::make_shared<Writer>(path, known_.world_size > 1);
  const absl::Status started = Writer::Start(writer);
  if (started.ok()) writer_ = std::move(writer);
  return started;
}

void FailureReport::SetPlan(const Job& job, const std::string& plan) {
  const std::lock_guard lock(mutex_);
  known_.plan = plan;
  known_.plan_hash = PlanHashText(job.file.hash);
  known_.mesh = job.bound.mesh;
}

void FailureReport::SetMeeting(const Rendezvous& rendezvous) {
  std::string text = std::to_string(rendezvous.generation());
  for (const PeerInfo& peer : rendezvous.peers())
    text += fmt::format("\n{} {} {} {}", peer.rank, peer.host_id, peer.hostname, peer.pid);
  const uint64_t hash =
      ContentHashOf(absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  const std::lock_guard lock(mutex_);
  known_.meeting = fmt::format("{:016x}", hash);
}

void FailureReport::Attach(const Job& job, const Executor& executor) {
  const std::lock_guard lock(mutex_);
  job_ = &job;
  executor_ = &executor;
}

void FailureReport::Detach() {
  const std::lock_guard lock(mutex_);
  job_ = nullptr;
  executor_ = nullptr;
}

void FailureReport::Hold() {
  const std::lock_guard lock(mutex_);
  HoldLocked();
}

void FailureReport::HoldLocked() {
  if (std::exchange(held_, true)) return;
  known_.activity = ReportedOf(activity_);
  known_.saving = ReportedOf(saving_);
}

void FailureReport::DescribeEnd(const absl::Status& status, int signal, RankReport& report) const {
  report.cause = OneLine(std::string(status.message()));
  report.status = absl::StatusCodeToString(status.code());
  report.signal = signal;
  const std::optional<BlamedRank> blamed = BlamedBy(report.cause);
  if (blamed.has_value() && blamed->rank >= 0 && blamed->rank < report.world_size) {
    report.origin = ReportOrigin::kPeer;
    report.blamed_rank = blamed->rank;
    report.blamed_is_lost = blamed->lost;
  } else if (signal != 0) {
    report.origin = ReportOrigin::kSignal;
  }
  for (const int rank : MissingRanks(status)) {
    if (rank >= 0 && rank < report.world_size) report.missing_ranks.push_back(rank);
  }
}

// With the mutex held: nothing that it looks at goes away meanwhile.
std::string FailureReport::Describe(const absl::Status& status, int signal) {
  HoldLocked();
  RankReport report = known_;
  int64_t taken_ns = MonotonicNs();
  if (executor_ != nullptr) {
    const ExecutorPosition position = executor_->Position();
    taken_ns = position.taken_ns;
    AddPosition(position, job_->plan(), executor_->operands(), report);
    // Who was missing is known where the collective failed, and may have got lost in words.
    if (MissingRanks(status).empty())
      for (const int rank : MissingRanks(position.failure)) report.missing_ranks.push_back(rank);
  }
  report.taken = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()) -
                 static_cast<double>(MonotonicNs() - taken_ns) * 1e-9;
  DescribeEnd(status, signal, report);
  return RankReportText(report);
}

void FailureReport::Write(const absl::Status& status, int signal) {
  if (writer_ == nullptr || status.ok()) return;
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(written_, true)) text = Describe(status, signal);
  }
  const bool first = !text.empty();
  const absl::Status written = first ? writer_->Write(std::move(text)) : writer_->Await();
  // What ends the run may be that this folder cannot be written to: then that has been said.
  if (first && !written.ok() && !absl::StrContains(status.message(), folder_))
    PrintError(prefix_ + "the report of where this rank stood is lost: " + std::string(written.message()));
}

}  // namespace ft
