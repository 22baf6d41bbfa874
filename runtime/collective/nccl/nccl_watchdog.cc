#include "runtime/collective/nccl/nccl_watchdog.h"

#include <algorithm>

#include "absl/time/clock.h"

namespace ft::nccl {

NcclWatchdog::NcclWatchdog(absl::Duration period) : period_(period), thread_([this] { Run(); }) {}

NcclWatchdog::~NcclWatchdog() {
  {
    const std::lock_guard<std::mutex> lock(wake_mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void NcclWatchdog::Add(Watched* watched) {
  const std::lock_guard<std::mutex> lock(list_mutex_);
  list_.push_back(watched);
}

void NcclWatchdog::Remove(Watched* watched) {
  const std::lock_guard<std::mutex> lock(list_mutex_);
  std::erase(list_, watched);
}

void NcclWatchdog::Wake() {
  {
    const std::lock_guard<std::mutex> lock(wake_mutex_);
    woken_ = true;
  }
  wake_.notify_all();
}

void NcclWatchdog::Run() {
  std::unique_lock<std::mutex> lock(wake_mutex_);
  while (!ending_) {
    wake_.wait_for(lock, absl::ToChronoNanoseconds(period_), [this] { return woken_ || ending_; });
    woken_ = false;
    lock.unlock();
    {
      const std::lock_guard<std::mutex> looking(list_mutex_);
      const absl::Time now = absl::Now();
      for (Watched* watched : list_) watched->Watch(now);
    }
    lock.lock();
  }
}

}  // namespace ft::nccl
