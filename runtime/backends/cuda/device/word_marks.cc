#include "runtime/backends/cuda/device/word_marks.h"

#include <algorithm>
#include <new>
#include <utility>

#include "runtime/base/status_macros.h"

namespace ft::cuda {
namespace {

// How often the words are read while they change: a device that dies in between leaves them so.
constexpr int kTries = 1000;

}  // namespace

// The tasks and waits of one stream in one recording.
class WordMarks::ReplayOfTasks final : public Replay {
 public:
  ReplayOfTasks(WordMarks& marks, uint64_t tasks, std::shared_ptr<WaitTimes> waits)
      : marks_(marks), tasks_(tasks), waits_(std::move(waits)) {}

  absl::Status Prepare(StreamHandle origin) override {
    WordMarks& m = marks_;
    if (waits_ != nullptr && std::find(m.started_.begin(), m.started_.end(), waits_) == m.started_.end())
      m.started_.push_back(waits_);
    if (tasks_ == 0) return absl::OkStatus();
    m.before_ += m.begun_;
    m.begun_ = tasks_;
    m.starts_ += 2;
    return m.state_.driver.Store({{&m.words_->starts, m.starts_ - 1},
                                  {&m.words_->before, m.before_},
                                  {&m.words_->begun, 0},
                                  {&m.words_->finished, 0},
                                  {&m.words_->starts, m.starts_}},
                                 origin);
  }

 private:
  WordMarks& marks_;
  const uint64_t tasks_;
  const std::shared_ptr<WaitTimes> waits_;
};

absl::StatusOr<std::unique_ptr<WordMarks>> WordMarks::Create(DeviceState& state) {
  std::unique_ptr<WordMarks> marks(new WordMarks(state));
  FT_ASSIGN_OR_RETURN(void* words, state.driver.MallocHost(sizeof(Words)));
  marks->words_ = new (words) Words{};
  return marks;
}

WordMarks::~WordMarks() {
  if (words_ != nullptr) state_.driver.FreeHost(words_).IgnoreError();
}

absl::Status WordMarks::TaskBegin(const CommandInfo& info, StreamHandle stream) {
  const uint64_t number = state_.recording ? ++recorded_ : ++begun_;
  return state_.driver.Store({{&words_->task, reinterpret_cast<uint64_t>(&info)}, {&words_->begun, number}},
                             stream);
}

absl::Status WordMarks::TaskEnd(StreamHandle stream) {
  return state_.driver.Store({{&words_->finished, state_.recording ? recorded_ : begun_}}, stream);
}

absl::Status WordMarks::WaitBegin(StreamHandle stream) {
  if (!state_.recording) return eager_->Begin(stream);
  if (recording_ == nullptr) recording_ = std::make_shared<WaitTimes>(state_.driver);
  return recording_->Begin(stream);
}

absl::Status WordMarks::WaitEnd(StreamHandle stream) {
  return (state_.recording ? recording_ : eager_)->End(stream);
}

std::unique_ptr<StreamMarks::Replay> WordMarks::EndRecording() {
  const uint64_t tasks = std::exchange(recorded_, 0);
  std::shared_ptr<WaitTimes> waits = std::exchange(recording_, nullptr);
  if (tasks == 0 && waits == nullptr) return nullptr;
  return std::make_unique<ReplayOfTasks>(*this, tasks, std::move(waits));
}

void WordMarks::Collect() {
  waited_ns_ += eager_->Sum().value_or(0);
  eager_->Clear();
  for (const std::shared_ptr<WaitTimes>& waits : started_) waited_ns_ += waits->Sum().value_or(0);
  started_.clear();
}

InFlight WordMarks::in_flight() const {
  for (int tries = 0;; ++tries) {
    const uint64_t starts = LoadMark(words_->starts);
    const uint64_t before = LoadMark(words_->before), begun = LoadMark(words_->begun);
    const uint64_t task = LoadMark(words_->task);
    // Last: had the next task begun to report itself, this one is seen to have finished.
    const uint64_t finished = LoadMark(words_->finished);
    const bool changed = LoadMark(words_->begun) != begun || LoadMark(words_->starts) != starts;
    if ((changed || starts % 2 != 0) && tries < kTries) continue;
    if (before + begun == 0) return {};
    return {.info = reinterpret_cast<const CommandInfo*>(task),
            .sequence = before + begun,
            .running = begun != finished};
  }
}

absl::Status WordMarks::Try(Driver& driver, StreamHandle stream) {
  if (!driver.CanStore()) return absl::UnimplementedError("a driver without operations on memory");
  FT_ASSIGN_OR_RETURN(void* const word, driver.MallocHost(sizeof(uint64_t)));
  auto* const value = new (word) uint64_t{0};
  WaitTimes times(driver);
  const auto enqueue = [&]() -> absl::Status {
    FT_RETURN_IF_ERROR(times.Begin(stream));
    FT_RETURN_IF_ERROR(driver.Store({{value, 1}}, stream));
    return times.End(stream);
  };
  const auto attempt = [&]() -> absl::Status {
    FT_RETURN_IF_ERROR(driver.BeginCapture(stream));
    const absl::Status enqueued = enqueue();
    FT_ASSIGN_OR_RETURN(const GraphHandle graph, driver.EndCapture(stream));
    absl::Status status = enqueued;
    if (status.ok()) status = driver.LaunchGraph(graph, stream);
    if (status.ok()) status = driver.Synchronize(stream);
    if (status.ok()) status = times.Sum().status();
    driver.DestroyGraph(graph).IgnoreError();
    return status;
  };
  absl::Status status = attempt();
  if (status.ok() && LoadMark(*value) != 1) status = absl::InternalError("a word that was not stored");
  driver.FreeHost(word).IgnoreError();
  return status;
}

}  // namespace ft::cuda
