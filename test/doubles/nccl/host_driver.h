// Streams for tests of what enqueues on them: each is a thread of the host, which can also be told to keep
// what it gets, as a stream does whose work is being captured. Device code compiled for the host runs there.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/backends/cuda/device_code/gpu.h"
#include "test/doubles/cuda/no_driver.h"

namespace ft::testing {

class HostStream final : public CUstream_st {
 public:
  using Work = std::function<int()>;

  HostStream() : thread_([this] { Run(); }) {}
  ~HostStream() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  int Submit(const char*, Work work) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    (capturing_ ? captured_ : queue_).push_back(std::move(work));
    changed_.notify_all();
    return 0;
  }

  // From now on work is kept rather than run.
  void Capture() {
    const std::lock_guard<std::mutex> lock(mutex_);
    capturing_ = true;
  }
  // Runs what was kept, again each time.
  void Replay() {
    const std::lock_guard<std::mutex> lock(mutex_);
    capturing_ = false;
    queue_.insert(queue_.end(), captured_.begin(), captured_.end());
    changed_.notify_all();
  }
  // Runs it no more.
  void Forget() {
    std::deque<Work> captured;  // goes without the lock
    const std::lock_guard<std::mutex> lock(mutex_);
    captured_.swap(captured);
  }
  size_t captured() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return captured_.size();
  }

  // Waits until all is done; the first error of the work so far.
  int Finish() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return queue_.empty() && !busy_; });
    return error_;
  }

 private:
  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !queue_.empty() || ending_; });
      if (queue_.empty()) return;
      const Work work = std::move(queue_.front());
      queue_.pop_front();
      busy_ = true;
      lock.unlock();
      const int error = work();
      lock.lock();
      busy_ = false;
      if (error_ == 0) error_ = error;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_, captured_;
  bool capturing_ = false;
  bool busy_ = false;
  bool ending_ = false;
  int error_ = 0;
  std::thread thread_;
};

class HostDriver final : public cuda::NoDriver {
 public:
  absl::StatusOr<void*> Malloc(uint64_t bytes) override {
    if (bytes > limit_) return absl::ResourceExhaustedError(absl::StrCat("no ", bytes, " bytes"));
    return std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  }
  absl::StatusOr<void*> MallocHost(uint64_t bytes) override { return Malloc(bytes); }
  absl::Status Free(void* data) override {
    std::free(data);
    return absl::OkStatus();
  }
  absl::Status FreeHost(void* data) override { return Free(data); }
  absl::Status Zero(void* data, uint64_t bytes) override {
    std::memset(data, 0, bytes);
    return absl::OkStatus();
  }
  absl::Status Copy(void* dst, const void* src, uint64_t bytes) override {
    std::memcpy(dst, src, bytes);
    return absl::OkStatus();
  }
  absl::Status CopyAsync(void* dst, const void* src, uint64_t bytes, cuda::StreamHandle stream) override {
    stream->Submit("copy", [=] {
      std::memcpy(dst, src, bytes);
      return 0;
    });
    return absl::OkStatus();
  }

  absl::StatusOr<cuda::StreamHandle> CreateStream(bool) override { return new HostStream(); }
  absl::Status DestroyStream(cuda::StreamHandle stream) override {
    delete static_cast<HostStream*>(stream);
    return absl::OkStatus();
  }
  absl::Status Synchronize(cuda::StreamHandle stream) override {
    return LaunchStatus(static_cast<HostStream*>(stream)->Finish(), "a stream");
  }

  absl::Status LaunchStatus(int error, const char* what) override {
    if (error == 0) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(what, " failed: ", error));
  }

  // More than this at once is not there.
  void Limit(uint64_t bytes) { limit_ = bytes; }

 private:
  uint64_t limit_ = UINT64_MAX;
};

}  // namespace ft::testing
