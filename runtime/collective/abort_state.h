// The first reason why a communicator stopped working; it keeps it.
#pragma once

#include <atomic>
#include <utility>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace ft {

class AbortState {
 public:
  // Keeps the first reason. `reason` must not be OK. Returns the reason that holds. Callable from any thread.
  absl::Status Set(absl::Status reason) {
    absl::MutexLock lock(&mutex_);
    if (reason_.ok()) reason_ = std::move(reason);
    aborted_.store(true, std::memory_order_release);
    return reason_;
  }

  bool aborted() const { return aborted_.load(std::memory_order_acquire); }

  absl::Status status() const {
    if (!aborted()) return absl::OkStatus();
    absl::MutexLock lock(&mutex_);
    return reason_;
  }

 private:
  std::atomic<bool> aborted_{false};
  mutable absl::Mutex mutex_;
  absl::Status reason_;
};

}  // namespace ft
