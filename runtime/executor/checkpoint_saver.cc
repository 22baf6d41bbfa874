#include "runtime/executor/checkpoint_saver.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/memory/memory.h"
#include "fmt/format.h"
#include "runtime/base/output_check.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/streaming_copy.h"
#include "runtime/base/thread.h"
#include "runtime/checkpoint/state/branches.h"
#include "runtime/checkpoint/state/checkpoint_reader.h"

namespace ft {
namespace {

using Clock = std::chrono::steady_clock;

double MillisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// What a rank brings to the agreement: "+" and what it wrote, or "-" and why it failed.
std::string Payload(const absl::StatusOr<WrittenShare>& written) {
  return written.ok() ? "+" + Serialize(*written) : "-" + std::string(written.status().message());
}

// The snapshot, in the order in which a share is written.
class SnapshotSource : public StateSource {
 public:
  explicit SnapshotSource(const Memory& snapshot) : next_(static_cast<const std::byte*>(snapshot.data())) {}
  absl::StatusOr<const std::byte*> Get(const Extent&, uint64_t, uint64_t bytes, std::byte*) override {
    return std::exchange(next_, next_ + bytes);
  }

 private:
  const std::byte* next_;
};

}  // namespace

CheckpointSaver::CheckpointSaver(FileLayout layout, int rank, const SaveSettings& settings,
                                 StateSource& source, AgreeFunction agree)
    : layout_(std::move(layout)),
      rank_(rank),
      settings_(settings),
      source_(source),
      agree_(std::move(agree)),
      share_(layout_, rank, settings.hosts),
      left_behind_(settings.left_behind) {}

absl::StatusOr<std::unique_ptr<CheckpointSaver>> CheckpointSaver::Create(FileLayout layout, int rank,
                                                                         const SaveSettings& settings,
                                                                         Device& device, StateSource& source,
                                                                         AgreeFunction agree) {
  auto saver =
      absl::WrapUnique(new CheckpointSaver(std::move(layout), rank, settings, source, std::move(agree)));
  if (!settings.async) return saver;
  const uint64_t bytes = saver->share_.state_bytes();
  absl::StatusOr<std::unique_ptr<Memory>> snapshot = device.AllocateHost(std::max<uint64_t>(bytes, 1));
  if (!snapshot.ok()) {
    return absl::Status(snapshot.status().code(),
                        fmt::format("no memory for a snapshot of {} bytes, which saving asynchronously needs "
                                    "(--async-save=off saves without): {}",
                                    bytes, std::string(snapshot.status().message())));
  }
  saver->snapshot_ = *std::move(snapshot);
  FT_ASSIGN_OR_RETURN(saver->thread_, StartThread("to write checkpoints", [s = saver.get()] { s->Loop(); }));
  return saver;
}

CheckpointSaver::~CheckpointSaver() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

absl::Status CheckpointSaver::Save(proto::Manifest manifest) {
  const Clock::time_point begin = Clock::now();
  if (!settings_.async) {
    const uint64_t step = manifest.position().steps();
    Outcome outcome = {.step = step};
    outcome.status = WriteAndAgree(source_, manifest, absl::OkStatus(), outcome.note);
    outcome.aside = std::exchange(aside_, "");
    const double ms = MillisecondsSince(begin);
    outcome.cost = {.stall_ms = ms, .seconds = ms / 1e3, .bytes = share_.bytes()};
    outcomes_.push_back(std::move(outcome));
    return absl::OkStatus();
  }
  {
    const std::lock_guard lock(mutex_);
    delayed_ = busy_;
  }
  Wait();
  const absl::Status copied = Copy();
  {
    const std::lock_guard lock(mutex_);
    pending_ = std::move(manifest);
    copied_ = copied;
    pending_cost_ = {.stall_ms = MillisecondsSince(begin), .seconds = 0, .bytes = share_.bytes()};
    busy_ = true;
  }
  changed_.notify_all();
  return copied;
}

absl::Status CheckpointSaver::Copy() {
  auto* to = static_cast<std::byte*>(snapshot_->data());
  for (const Share::Piece& piece : share_.pieces()) {
    for (const auto& [extent, sent] : piece.parts) {
      FT_ASSIGN_OR_RETURN(const std::byte* const from, source_.Get(extent, 0, extent.bytes, to));
      if (from != to) StreamingCopy(to, from, extent.bytes);
      to += extent.bytes;
    }
  }
  return absl::OkStatus();
}

void CheckpointSaver::Wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
}

std::vector<CheckpointSaver::Outcome> CheckpointSaver::TakeOutcomes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(outcomes_, {});
}

void CheckpointSaver::Loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return pending_.has_value() || ending_; });
    if (!pending_.has_value()) return;
    const proto::Manifest manifest = *std::exchange(pending_, std::nullopt);
    const absl::Status copied = copied_;
    Outcome outcome = {.step = manifest.position().steps()};
    outcome.cost = pending_cost_;
    lock.unlock();
    const Clock::time_point begin = Clock::now();
    SnapshotSource source(*snapshot_);
    outcome.status = WriteAndAgree(source, manifest, copied, outcome.note);
    outcome.aside = std::exchange(aside_, "");
    Enter(settings_.activity, Activity::kNone);
    outcome.cost.seconds = (MillisecondsSince(begin) + outcome.cost.stall_ms) / 1e3;
    lock.lock();
    outcomes_.push_back(std::move(outcome));
    busy_ = false;
    changed_.notify_all();
  }
}

absl::Status CheckpointSaver::WriteAndAgree(StateSource& source, const proto::Manifest& manifest,
                                            const absl::Status& so_far, std::string& note) {
  const StagedCheckpoint staged = {.folder = settings_.folder, .step = manifest.position().steps()};
  Enter(settings_.activity, Activity::kSaving, static_cast<int64_t>(staged.step));
  const auto write = [&]() -> absl::StatusOr<WrittenShare> {
    FT_RETURN_IF_ERROR(so_far);
    FT_RETURN_IF_ERROR(MakeStaged(staged));
    const uint64_t bytes = rank_ == 0 ? StateBytes(layout_.state()) : share_.bytes();
    FT_RETURN_IF_ERROR(CheckRoom(staged.path(), staged.path(), bytes));
    return WriteShare(share_, staged.path(), source);
  };
  const absl::StatusOr<WrittenShare> written = write();
  const auto decide = [&](const std::vector<std::string>& by_rank) {
    return Decide(manifest, staged, by_rank);
  };
  Enter(settings_.activity, Activity::kPublishing, static_cast<int64_t>(staged.step));
  FT_ASSIGN_OR_RETURN(note, agree_("checkpoint", staged.step, Payload(written), decide));
  return absl::OkStatus();
}

// On rank 0. The error is what all ranks get.
absl::StatusOr<std::string> CheckpointSaver::Decide(const proto::Manifest& manifest,
                                                    const StagedCheckpoint& staged,
                                                    const std::vector<std::string>& by_rank) {
  const auto all = [&]() -> absl::Status {
    WrittenShare written;
    for (size_t rank = 0; rank < by_rank.size(); ++rank) {
      const std::string& payload = by_rank[rank];
      if (payload.empty() || payload.front() != '+') {
        const std::string why = payload.empty() ? "it said nothing" : payload.substr(1);
        return absl::UnavailableError(by_rank.size() == 1 ? why : fmt::format("rank {}: {}", rank, why));
      }
      FT_ASSIGN_OR_RETURN(WrittenShare of_rank, ParseWrittenShare(std::string_view(payload).substr(1)));
      written.Append(std::move(of_rank));
    }
    FT_RETURN_IF_ERROR(
        CompleteCheckpoint(layout_, staged.path(), settings_.extra_files, std::move(written), manifest));
    const auto is_left = [&](const CheckpointEntry& entry) { return entry.step == staged.step; };
    return Publish(staged, std::any_of(left_behind_.begin(), left_behind_.end(), is_left));
  };
  const absl::Status status = all();
  if (status.ok()) {
    const absl::Status tidied = TidyUp(manifest, staged);
    return tidied.ok() ? "" : fmt::format("others are still there: {}", std::string(tidied.message()));
  }
  RemoveStaged(staged).IgnoreError();  // what is left goes before the next run
  return absl::InternalError(status.message());
}

// The new one is on the disk. First what is not the run's past goes aside, so that nobody counts it.
absl::Status CheckpointSaver::TidyUp(const proto::Manifest& manifest, const StagedCheckpoint& published) {
  if (!left_behind_.empty()) {
    absl::StatusOr<std::string> aside = MoveAside(settings_.folder, left_behind_, published);
    // What has this name from now on is the run's own.
    std::erase_if(left_behind_, [&](const auto& entry) { return entry.step == published.step; });
    FT_ASSIGN_OR_RETURN(aside_, std::move(aside));
    left_behind_.clear();
  }
  return Retain(manifest);
}

// Checkpoints whose manifest cannot be read are not touched.
absl::Status CheckpointSaver::Retain(const proto::Manifest& manifest) {
  const Retention& retention = settings_.retention;
  if (retention.newest == 0 && retention.every == 0 && retention.best == 0) return absl::OkStatus();
  FT_ASSIGN_OR_RETURN(const std::vector<CheckpointEntry> entries, ListCheckpoints(settings_.folder));
  std::vector<KeptCandidate> candidates;
  for (const CheckpointEntry& entry : entries) {
    // Those of steps to come were put there meanwhile, by another.
    if (!entry.has_manifest || entry.step > manifest.position().steps()) continue;
    KeptCandidate candidate = {.step = entry.step};
    if (retention.best > 0) {
      const auto reader = CheckpointReader::Open(entry.path);
      if (!reader.ok()) continue;
      candidate.evaluated = (*reader)->manifest().has_eval_loss();
      candidate.eval_loss = (*reader)->manifest().eval_loss();
    }
    candidates.push_back(candidate);
  }
  for (const uint64_t step : Expendable(retention, candidates))
    FT_RETURN_IF_ERROR(RemoveCheckpoint(fmt::format("{}/{}", settings_.folder, CheckpointName(step))));
  return absl::OkStatus();
}

}  // namespace ft
