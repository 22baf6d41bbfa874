// Why something stopped working: the first reason counts, what follows are its consequences.
#pragma once

#include <atomic>
#include <utility>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace ft {

// All methods are thread-safe; looking for a failure costs one atomic load as long as there is none.
class FirstFailure {
 public:
  // Keeps the first reason, which must not be OK. Returns the reason that holds.
  absl::Status Set(absl::Status reason) {
    absl::MutexLock lock(&mutex_);
    if (reason_.ok()) reason_ = std::move(reason);
    failed_.store(true, std::memory_order_release);
    return reason_;
  }

  bool failed() const { return failed_.load(std::memory_order_acquire); }

  absl::Status status() const {
    if (!failed()) return absl::OkStatus();
    absl::MutexLock lock(&mutex_);
    return reason_;
  }

 private:
  std::atomic<bool> failed_{false};
  mutable absl::Mutex mutex_;
  absl::Status reason_;
};

}  // namespace ft
