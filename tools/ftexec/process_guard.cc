#include "tools/ftexec/process_guard.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/time/clock.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/thread.h"

namespace ft {
namespace {

constexpr int kSecondsToCleanUp = 2;

sigset_t GuardedSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGTERM, SIGINT, SIGHUP}) {
    struct sigaction current;
    sigaction(number, nullptr, &current);
    if (current.sa_handler != SIG_IGN) sigaddset(&set, number);  // as nohup asks
  }
  return set;
}

// Data and weights are mapped: reading what is no longer there, or cannot be read, is a signal, not an error.
void EndWithoutFile(int) {
  static constexpr char kLine[] =
      "ftexec: a file in use (data, weights) became shorter or cannot be read any more; leave it as it is "
      "while a "
      "run reads it\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kLine, sizeof(kLine) - 1);
  _exit(kExitIo);
}

void Notify(int fd) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written =
      write(fd, &one, sizeof(one));  // cannot fail: the counter is far from full
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessGuard>> ProcessGuard::Start() {
  std::unique_ptr<ProcessGuard> guard(new ProcessGuard());
  const sigset_t set = GuardedSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);  // before the thread, which shall have it, too
  if (const absl::Status opened = guard->Open(); !opened.ok()) {
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    return opened;
  }
  ::signal(SIGBUS, EndWithoutFile);
  ::signal(SIGPIPE, SIG_IGN);  // a closed pipe or socket is an error like others
  return guard;
}

absl::Status ProcessGuard::Open() {
  const sigset_t set = GuardedSignals();
  signal_fd_ = signalfd(-1, &set, SFD_CLOEXEC);
  if (signal_fd_ >= 0) wake_fd_ = eventfd(0, EFD_CLOEXEC);
  if (wake_fd_ >= 0) end_fd_ = eventfd(0, EFD_CLOEXEC);
  if (end_fd_ < 0) return PosixError(errno, "open", "a descriptor for signals");
  FT_ASSIGN_OR_RETURN(thread_, StartThread("to take signals", [this] { Loop(); }));
  return absl::OkStatus();
}

ProcessGuard::~ProcessGuard() {
  if (thread_.joinable()) {
    Notify(end_fd_);
    thread_.join();
  }
  for (int fd : {signal_fd_, wake_fd_, end_fd_}) {
    if (fd >= 0) close(fd);
  }
}

void ProcessGuard::OnCancel(std::function<void(const absl::Status&)> cancel) {
  const std::lock_guard lock(mutex_);
  cancel_ = std::move(cancel);
}

void ProcessGuard::PeerLost(const absl::Status& reason) { EndIn(reason, kSecondsToCleanUp); }

void ProcessGuard::Failed(const absl::Status& reason, int seconds) { EndIn(reason, seconds); }

void ProcessGuard::EndIn(const absl::Status& reason, int seconds) {
  {
    const std::lock_guard lock(mutex_);
    if (!reason_.ok()) return;  // the first one is the cause of what follows
    reason_ = reason;
    seconds_ = seconds;
  }
  Notify(wake_fd_);
}

void ProcessGuard::set_prefix(std::string prefix) {
  const std::lock_guard lock(mutex_);
  prefix_ = std::move(prefix);
}

void ProcessGuard::Cancel(const absl::Status& reason) {
  const std::lock_guard lock(mutex_);
  if (cancel_) cancel_(reason);
}

void ProcessGuard::Allow(int seconds) {
  const std::lock_guard lock(mutex_);
  allowed_ = std::max(allowed_, absl::Now() + absl::Seconds(seconds));
}

// Neither the end nor a signal is taken from its descriptor.
ProcessGuard::Awaited ProcessGuard::Await(int seconds, bool signals) {
  pollfd fds[2] = {{.fd = end_fd_, .events = POLLIN, .revents = 0},
                   {.fd = signal_fd_, .events = POLLIN, .revents = 0}};
  absl::Time until = absl::Now() + absl::Seconds(seconds);
  for (;;) {
    const absl::Duration left = std::max(until - absl::Now(), absl::ZeroDuration());
    poll(fds, signals ? 2 : 1, static_cast<int>(absl::ToInt64Milliseconds(left)));
    if (fds[0].revents != 0) return Awaited::kEnd;
    if (fds[1].revents != 0) return Awaited::kSignal;
    const std::lock_guard lock(mutex_);
    until = std::max(until, allowed_);
    if (absl::Now() >= until) return Awaited::kNothing;
  }
}

void ProcessGuard::Loop() {
  pollfd fds[3] = {{.fd = end_fd_, .events = POLLIN, .revents = 0},
                   {.fd = signal_fd_, .events = POLLIN, .revents = 0},
                   {.fd = wake_fd_, .events = POLLIN, .revents = 0}};
  while (poll(fds, 3, -1) < 0) {
  }
  if (fds[0].revents != 0) return;
  if (fds[1].revents != 0) return EndBySignal();
  absl::Status reason;
  int seconds = 0;
  std::string prefix;
  {
    const std::lock_guard lock(mutex_);
    reason = reason_;
    seconds = seconds_;
    prefix = prefix_;
  }
  Cancel(reason);
  switch (Await(seconds, /*signals=*/true)) {
    case Awaited::kEnd:
      return;
    case Awaited::kSignal:
      return EndBySignal();
    case Awaited::kNothing:
      break;
  }
  const std::string line = OneLine(prefix + std::string(reason.message())) + "\n";
  [[maybe_unused]] const ssize_t bytes = write(STDERR_FILENO, line.data(), line.size());
  _exit(ExitStatus(reason));
}

void ProcessGuard::EndBySignal() {
  signalfd_siginfo info;
  [[maybe_unused]] const ssize_t bytes = read(signal_fd_, &info, sizeof(info));
  signal_ = static_cast<int>(info.ssi_signo);
  bool idle = false;
  {
    const std::lock_guard lock(mutex_);
    idle = !cancel_;
  }
  if (!idle) {
    Cancel(absl::CancelledError(std::string("ended by signal ") + strsignal(signal_)));
    if (Await(kSecondsToCleanUp, /*signals=*/false) == Awaited::kEnd) return;
  }
  RaiseAgain();
}

void ProcessGuard::RaiseAgain() const {
  const int number = signal_;
  if (number == 0) return;
  ::signal(number, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  kill(getpid(), number);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace ft
