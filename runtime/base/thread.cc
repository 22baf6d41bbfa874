#include "runtime/base/thread.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"

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
  absl::Notification done;
  std::vector<std::thread> threads;
  absl::Status status;
  for (int i = 0; i < count && status.ok(); ++i) {
    absl::StatusOr<std::thread> thread = StartThread(purpose, [&done] { done.WaitForNotification(); });
    status = thread.status();
    if (thread.ok()) threads.push_back(*std::move(thread));
  }
  done.Notify();
  for (std::thread& thread : threads) thread.join();
  return status;
}

}  // namespace ft
