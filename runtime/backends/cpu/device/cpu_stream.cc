#include "runtime/backends/cpu/device/cpu_stream.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/backends/cpu/cpu_kernel.h"
#include "runtime/base/monotonic_clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/thread.h"

namespace ft {

CpuStream::CpuStream(std::string name, size_t max_enqueued, int64_t spin_ns, FirstFailure& failure)
    : name_(std::move(name)),
      spin_ns_(spin_ns),
      failure_(failure),
      ring_(std::max<size_t>(1, max_enqueued)) {}

absl::StatusOr<std::unique_ptr<CpuStream>> CpuStream::Start(std::string name, size_t max_enqueued,
                                                            int64_t spin_ns, FirstFailure& failure) {
  const std::string purpose = "for stream " + name;
  std::unique_ptr<CpuStream> stream(new CpuStream(std::move(name), max_enqueued, spin_ns, failure));
  FT_ASSIGN_OR_RETURN(stream->thread_, StartThread(purpose, [raw = stream.get()] { raw->Loop(); }));
  return stream;
}

CpuStream::~CpuStream() {
  if (!thread_.joinable()) return;
  Enqueue({});  // an empty span ends the thread
  thread_.join();
}

void CpuStream::Enqueue(absl::Span<const Command> commands) {
  // A full ring means that the oldest span is still running: wait for it.
  const uint32_t room = static_cast<uint32_t>(ring_.size());
  if (num_enqueued_ - finished_.value() >= room) finished_.WaitFor(num_enqueued_ - room + 1, spin_ns_);
  ring_[num_enqueued_ % room] = commands;
  ++num_enqueued_;
  enqueued_.Increment();
}

void CpuStream::Synchronize() { finished_.WaitFor(num_enqueued_, spin_ns_); }

void CpuStream::Loop() {
  pthread_setname_np(pthread_self(), name_.substr(0, 15).c_str());
  for (uint32_t next = 0;; ++next) {
    enqueued_.WaitFor(next + 1, spin_ns_);
    const absl::Span<const Command> commands = ring_[next % ring_.size()];
    if (commands.empty()) return;
    RunAll(commands);
    finished_.Increment();
  }
}

// One look at the clock a command: where one ends the next begins. What only records an event is nothing that
// a stream could stand in, and wakes others meanwhile: it is nobody's time.
void CpuStream::RunAll(absl::Span<const Command> commands) {
  int64_t begin = MonotonicNs();
  for (const Command& command : commands) {
    if (command.info == nullptr) {
      Run(command);
      begin = MonotonicNs();
      continue;
    }
    history_.Begin(*command.info, begin);
    Run(command);
    const int64_t end = MonotonicNs();
    history_.End(end);
    if (command.kind == Command::Kind::kWait) waited_ns_ += end - begin;
    if (observer_ != nullptr) observer_->OnCommand(*command.info, begin, end);
    begin = end;
  }
}

void CpuStream::Run(const Command& command) {
  switch (command.kind) {
    case Command::Kind::kKernel:
      if (!failure_.failed()) static_cast<CpuKernel*>(command.kernel)->Run();
      return;
    case Command::Kind::kTask:
      if (failure_.failed()) return;
      if (absl::Status status = command.task->Run(); !status.ok())
        failure_.Set(std::move(status)).IgnoreError();
      return;
    case Command::Kind::kCopy:
      if (failure_.failed()) return;
      for (const CopyRegion& region : *command.copy) std::memcpy(region.dst, region.src, region.bytes);
      return;
    case Command::Kind::kRecord:
      static_cast<CpuEvent*>(command.event)->Record();
      return;
    case Command::Kind::kWait:
      static_cast<CpuEvent*>(command.event)->Wait(spin_ns_);
      return;
  }
}

}  // namespace ft
