#include "runtime/backends/cuda/device/stream_marks.h"

#include <atomic>
#include <new>

#include "runtime/base/status_macros.h"

namespace ft::cuda {
namespace {

// A word that the device writes meanwhile.
uint64_t Load(uint64_t& word) { return std::atomic_ref(word).load(std::memory_order_acquire); }

}  // namespace

absl::StatusOr<std::unique_ptr<StreamMarks>> StreamMarks::Create(Driver& driver) {
  std::unique_ptr<StreamMarks> marks(new StreamMarks(driver));
  FT_ASSIGN_OR_RETURN(void* state, driver.Malloc(sizeof(MarkState)));
  marks->state_ = static_cast<MarkState*>(state);
  FT_RETURN_IF_ERROR(driver.Zero(state, sizeof(MarkState)));
  FT_ASSIGN_OR_RETURN(void* report, driver.MallocHost(sizeof(MarkReport)));
  marks->report_ = new (report) MarkReport{};
  return marks;
}

StreamMarks::~StreamMarks() {
  if (state_ != nullptr) driver_.Free(state_).IgnoreError();
  if (report_ != nullptr) driver_.FreeHost(report_).IgnoreError();
}

absl::Status StreamMarks::TaskBegin(const CommandInfo& info, StreamHandle stream) {
  return driver_.LaunchStatus(MarkTaskBegin(state_, report_, reinterpret_cast<uint64_t>(&info), stream),
                              "the mark before a task");
}

absl::Status StreamMarks::TaskEnd(StreamHandle stream) {
  return driver_.LaunchStatus(MarkTaskEnd(state_, report_, stream), "the mark after a task");
}

absl::Status StreamMarks::WaitBegin(StreamHandle stream) {
  return driver_.LaunchStatus(MarkWaitBegin(state_, stream), "the mark before a wait");
}

absl::Status StreamMarks::WaitEnd(StreamHandle stream) {
  return driver_.LaunchStatus(MarkWaitEnd(state_, report_, stream), "the mark after a wait");
}

InFlight StreamMarks::in_flight() const {
  for (;;) {
    const uint64_t begun = Load(report_->begun);
    const uint64_t task = Load(report_->task);
    // Last: had the next task begun to report itself, this one is seen to have finished.
    const uint64_t finished = Load(report_->finished);
    if (Load(report_->begun) != begun) continue;
    if (begun == 0) return {};
    return {
        .info = reinterpret_cast<const CommandInfo*>(task), .sequence = begun, .running = begun != finished};
  }
}

int64_t StreamMarks::waited_ns() const { return static_cast<int64_t>(Load(report_->waited_ns)); }

}  // namespace ft::cuda
