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

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/posix_error.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/thread.h"
#include "runtime/collective/net/socket.h"

namespace ft {
namespace {

constexpr int kSecondsToCleanUp = 2;

sigset_t GuardedSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) {
    struct sigaction current;
    sigaction(number, nullptr, &current);
    if (current.sa_handler != SIG_IGN) sigaddset(&set, number);  // as nohup asks
  }
  return set;
}

constexpr char kFileIsGone[] =
    "a file in use (data, weights) became shorter or cannot be read any more; leave it as it is while a run "
    "reads it";

// Of the guard, for a signal's handler; -1: there is none.
std::atomic<int> guard_of_files = -1;

// Data and weights are mapped: reading what is no longer there, or cannot be read, is a signal, not an error.
// The thread goes no further. The guard's ends the process, after its last words; if it does not, this one
// does.
void HoldWithoutFile(int) {
  constexpr int kMillisecondsForLastWords = 5000;
  const uint64_t one = 1;
  const int guard = guard_of_files.load();
  if (guard >= 0 && write(guard, &one, sizeof(one)) == sizeof(one))
    poll(nullptr, 0, kMillisecondsForLastWords);
  static constexpr char kPrefix[] = "ftexec: ";
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, kPrefix, sizeof(kPrefix) - 1);
  written = write(STDERR_FILENO, kFileIsGone, sizeof(kFileIsGone) - 1);
  written = write(STDERR_FILENO, "\n", 1);
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
  guard_of_files = guard->file_fd_;
  ::signal(SIGBUS, HoldWithoutFile);
  ::signal(SIGPIPE, SIG_IGN);  // a closed pipe or socket is an error like others
  return guard;
}

absl::Status ProcessGuard::Open() {
  const sigset_t set = GuardedSignals();
  signal_fd_ = signalfd(-1, &set, SFD_CLOEXEC);
  if (signal_fd_ >= 0) wake_fd_ = eventfd(0, EFD_CLOEXEC);
  if (wake_fd_ >= 0) end_fd_ = eventfd(0, EFD_CLOEXEC);
  if (end_fd_ >= 0) file_fd_ = eventfd(0, EFD_CLOEXEC);
  if (file_fd_ < 0) return PosixError(errno, "open", "a descriptor for signals");
  FT_ASSIGN_OR_RETURN(thread_, StartThread("to take signals", [this] { Loop(); }));
  return absl::OkStatus();
}

ProcessGuard::~ProcessGuard() {
  if (thread_.joinable()) {
    Notify(end_fd_);
    thread_.join();
  }
  guard_of_files = -1;
  for (int fd : {signal_fd_, wake_fd_, end_fd_, file_fd_}) {
    if (fd >= 0) close(fd);
  }
}

void ProcessGuard::OnCancel(std::function<void(const absl::Status&)> cancel) {
  const std::lock_guard lock(mutex_);
  cancel_ = std::move(cancel);
}

void ProcessGuard::OnWish(std::function<bool(Wish)> wish) {
  const std::lock_guard lock(mutex_);
  wish_ = std::move(wish);
}

void ProcessGuard::set_grace(absl::Duration grace) {
  const std::lock_guard lock(mutex_);
  grace_ = grace;
}

absl::Duration ProcessGuard::grace() {
  const std::lock_guard lock(mutex_);
  return grace_;
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

void ProcessGuard::OnEnd(std::function<void(const absl::Status&, int)> last_words) {
  const std::lock_guard lock(last_words_mutex_);
  last_words_ = std::move(last_words);
}

void ProcessGuard::LastWords(const absl::Status& reason, int number) {
  const std::lock_guard lock(last_words_mutex_);
  if (last_words_) last_words_(reason, number);
}

void ProcessGuard::Allow(int seconds) {
  const std::lock_guard lock(mutex_);
  allowed_ = std::max(allowed_, absl::Now() + absl::Seconds(seconds));
}

// Neither the end nor a signal is taken from its descriptor.
ProcessGuard::Awaited ProcessGuard::Await(absl::Time until, bool signals) {
  pollfd fds[2] = {{.fd = end_fd_, .events = POLLIN, .revents = 0},
                   {.fd = signal_fd_, .events = POLLIN, .revents = 0}};
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
  for (;;) {
    pollfd fds[4] = {{.fd = end_fd_, .events = POLLIN, .revents = 0},
                     {.fd = signal_fd_, .events = POLLIN, .revents = 0},
                     {.fd = wake_fd_, .events = POLLIN, .revents = 0},
                     {.fd = file_fd_, .events = POLLIN, .revents = 0}};
    if (poll(fds, 4, saving_for_ == 0 ? -1 : PollMilliseconds(save_until_)) < 0) continue;
    if (fds[0].revents != 0) return;
    if (fds[3].revents != 0) EndWithoutFile();
    if (fds[1].revents != 0) {
      if (Obey(TakeSignal())) return;
    } else if (fds[2].revents != 0) {
      return EndForReason();
    } else if (absl::Now() >= save_until_) {
      Say(absl::StrCat("no checkpoint within ", absl::FormatDuration(grace()), " of the signal ", saving_for_,
                       " (", strsignal(saving_for_),
                       "): ended without one, the one before stays; allow more with --grace"));
      return EndBySignal(saving_for_);
    }
  }
}

// A thread waits in HoldWithoutFile, with whatever locks it held: nothing is cleaned up.
void ProcessGuard::EndWithoutFile() {
  // As it would be said without a guard: who tells of a file names no rank.
  static const std::string line = absl::StrCat("ftexec: ", kFileIsGone, "\n");
  [[maybe_unused]] const ssize_t bytes = write(STDERR_FILENO, line.data(), line.size());
  LastWords(absl::InternalError(kFileIsGone), 0);
  _exit(kExitIo);
}

bool ProcessGuard::Obey(int number) {
  if (number == 0) return false;
  if (number == SIGUSR2) {
    if (!Ask(Wish::kSave))
      Say("SIGUSR2 is ignored: it wishes for a checkpoint, and none can be written by this run now");
    return false;
  }
  // What a wish for the end was answered with holds for the next one, but for a second SIGTERM.
  const bool impatient = number == SIGTERM && terminated_;
  const bool wishes = number == SIGTERM || number == SIGUSR1;
  if (!wishes || impatient || !Ask(Wish::kSaveAndEnd)) {
    EndBySignal(number);
    return true;
  }
  terminated_ |= number == SIGTERM;
  // Launchers begin to count with SIGTERM.
  if (saving_for_ == 0 || number == SIGTERM) {
    saving_for_ = number;
    save_until_ = absl::Now() + grace();
  }
  return false;
}

bool ProcessGuard::Ask(Wish wish) {
  const std::lock_guard lock(mutex_);
  return reason_.ok() && wish_ && wish_(wish);
}

// Ends for a reason that came from inside, or dies of a signal before.
void ProcessGuard::EndForReason() {
  absl::Status reason;
  int seconds = 0;
  {
    const std::lock_guard lock(mutex_);
    reason = reason_;
    seconds = seconds_;
  }
  Cancel(reason);
  const absl::Time until = absl::Now() + absl::Seconds(seconds);
  for (Awaited awaited; (awaited = Await(until, /*signals=*/true)) != Awaited::kNothing;) {
    if (awaited == Awaited::kEnd) return;
    const int number = TakeSignal();
    if (number == 0 || number == SIGUSR2) continue;
    // Launchers tell the others of a loss by a signal, mostly sooner than a run has ended because of it.
    Say(std::string(reason.message()));
    return EndBySignal(number, reason);
  }
  Say(std::string(reason.message()));
  LastWords(reason, 0);
  _exit(ExitStatus(reason));
}

void ProcessGuard::EndBySignal(int number) {
  EndBySignal(number, absl::CancelledError(std::string("ended by signal ") + strsignal(number)));
}

void ProcessGuard::EndBySignal(int number, const absl::Status& reason) {
  signal_ = number;
  bool idle = false;
  {
    const std::lock_guard lock(mutex_);
    idle = !cancel_;
  }
  if (!idle) {
    Cancel(reason);
    if (Await(absl::Now() + absl::Seconds(kSecondsToCleanUp), /*signals=*/false) == Awaited::kEnd) return;
  }
  LastWords(reason, number);
  RaiseAgain();
}

// 0: there was none.
int ProcessGuard::TakeSignal() {
  signalfd_siginfo info;
  const ssize_t bytes = read(signal_fd_, &info, sizeof(info));
  return bytes == sizeof(info) ? static_cast<int>(info.ssi_signo) : 0;
}

void ProcessGuard::Say(const std::string& text) {
  std::string prefix;
  {
    const std::lock_guard lock(mutex_);
    prefix = prefix_;
  }
  const std::string line = OneLine(prefix + text) + "\n";
  [[maybe_unused]] const ssize_t bytes = write(STDERR_FILENO, line.data(), line.size());
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
