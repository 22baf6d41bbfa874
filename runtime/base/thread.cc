#include "runtime/base/thread.h"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

namespace ft {

absl::StatusOr<std::thread> StartThread(std::string_view purpose, std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(fmt::format(
        "cannot start a thread {}: {}; allow more processes (ulimit -u, or the container's limit) or more "
        "memory (ulimit -v)",
        purpose, error.code().message()));
  }
}

absl::Status ProbeThreads(std::string_view purpose, int count) {
  // Of the standard library: where memory is short, absl's would end the process.
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  const auto wait = [&] {
    std::unique_lock lock(mutex);
    ended.wait(lock, [&] { return done; });
  };
  std::vector<std::thread> threads;
  absl::Status status;
  for (int i = 0; i < count && status.ok(); ++i) {
    absl::StatusOr<std::thread> thread = StartThread(purpose, wait);
    status = thread.status();
    if (thread.ok()) threads.push_back(*std::move(thread));
  }
  {
    const std::lock_guard lock(mutex);
    done = true;
  }
  ended.notify_all();
  for (std::thread& thread : threads) thread.join();
  return status;
}

}  // namespace ft
