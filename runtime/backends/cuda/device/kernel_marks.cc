#include "runtime/backends/cuda/device/kernel_marks.h"

#include <new>

#include "runtime/base/status_macros.h"

namespace ft::cuda {
absl::StatusOr<std::unique_ptr<KernelMarks>> KernelMarks::Create(Driver& driver) {
  std::unique_ptr<KernelMarks> marks(new KernelMarks(driver));
  FT_ASSIGN_OR_RETURN(void* state, driver.Malloc(sizeof(MarkState)));
  marks->state_ = static_cast<MarkState*>(state);
  FT_RETURN_IF_ERROR(driver.Zero(state, sizeof(MarkState)));
  FT_ASSIGN_OR_RETURN(void* report, driver.MallocHost(sizeof(MarkReport)));
  marks->report_ = new (report) MarkReport{};
  return marks;
}

KernelMarks::~KernelMarks() {
  if (state_ != nullptr) driver_.Free(state_).IgnoreError();
  if (report_ != nullptr) driver_.FreeHost(report_).IgnoreError();
}

absl::Status KernelMarks::TaskBegin(const CommandInfo& info, StreamHandle stream) {
  return driver_.LaunchStatus(MarkTaskBegin(state_, report_, reinterpret_cast<uint64_t>(&info), stream),
                              "the mark before a task");
}

absl::Status KernelMarks::TaskEnd(StreamHandle stream) {
  return driver_.LaunchStatus(MarkTaskEnd(state_, report_, stream), "the mark after a task");
}

absl::Status KernelMarks::WaitBegin(StreamHandle stream) {
  return driver_.LaunchStatus(MarkWaitBegin(state_, stream), "the mark before a wait");
}

absl::Status KernelMarks::WaitEnd(StreamHandle stream) {
  return driver_.LaunchStatus(MarkWaitEnd(state_, report_, stream), "the mark after a wait");
}

InFlight KernelMarks::in_flight() const {
  for (;;) {
    const uint64_t begun = LoadMark(report_->begun);
    const uint64_t task = LoadMark(report_->task);
    // Last: had the next task begun to report itself, this one is seen to have finished.
    const uint64_t finished = LoadMark(report_->finished);
    if (LoadMark(report_->begun) != begun) continue;
    if (begun == 0) return {};
    return {
        .info = reinterpret_cast<const CommandInfo*>(task), .sequence = begun, .running = begun != finished};
  }
}

int64_t KernelMarks::waited_ns() const { return static_cast<int64_t>(LoadMark(report_->waited_ns)); }

}  // namespace ft::cuda
