#include "runtime/base/thread.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace ft {

namespace {

absl::Status NoThread(std::string_view purpose, const std::string& why) {
  return absl::ResourceExhaustedError(fmt::format(
      "cannot start a thread {}: {}; allow more processes (ulimit -u, or the container's limit) or more "
      "memory (ulimit -v)",
      purpose, why));
}

}  // namespace

absl::StatusOr<std::thread> StartThread(std::string_view purpose, std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    return NoThread(purpose, error.code().message());
  }
}

absl::Status ProbeProcesses(std::string_view purpose, int count) {
  std::vector<pid_t> processes;
  absl::Status status;
  for (int i = 0; i < count && status.ok(); ++i) {
    const pid_t process = fork();
    if (process == 0) {  // nothing that another thread may hold a lock of
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) pause();
    }
    if (process > 0) processes.push_back(process);
    // Other errors say nothing about the number of threads.
    if (process < 0 && errno == EAGAIN) status = NoThread(purpose, std::strerror(EAGAIN));
  }
  for (const pid_t process : processes) kill(process, SIGKILL);
  for (const pid_t process : processes) {
    while (waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  return status;
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
