#include "runtime/backends/cuda/device/command_times.h"

#include "runtime/base/status_macros.h"

namespace ft::cuda {

CommandTimes::~CommandTimes() {
  for (const Entry& entry : entries_) {
    driver_.DestroyEvent(entry.begin).IgnoreError();
    if (entry.end != nullptr) driver_.DestroyEvent(entry.end).IgnoreError();
  }
}

absl::Status CommandTimes::Begin(const CommandInfo& info, StreamHandle stream) {
  if (used_ == entries_.size()) {
    Entry entry;
    FT_ASSIGN_OR_RETURN(entry.begin, driver_.CreateEvent(/*timing=*/true));
    entries_.push_back(entry);
    FT_ASSIGN_OR_RETURN(entries_.back().end, driver_.CreateEvent(/*timing=*/true));
  }
  Entry& entry = entries_[used_++];
  entry.info = &info;
  return driver_.Record(entry.begin, stream);
}

absl::Status CommandTimes::End(StreamHandle stream) {
  return driver_.Record(entries_[used_ - 1].end, stream);
}

absl::Status CommandTimes::Report(const TraceClock& clock, StreamObserver& observer) {
  const size_t used = used_;
  used_ = 0;
  for (size_t i = 0; i < used; ++i) {
    const Entry& entry = entries_[i];
    FT_ASSIGN_OR_RETURN(const int64_t begin, clock.At(entry.begin));
    FT_ASSIGN_OR_RETURN(const int64_t end, clock.At(entry.end));
    observer.OnCommand(*entry.info, begin, end);
  }
  return absl::OkStatus();
}

}  // namespace ft::cuda
