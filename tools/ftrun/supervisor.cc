#include "tools/ftrun/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/posix_error.h"

namespace ft::run {
namespace {

// A process that a rank started and left behind may keep a pipe open: do not wait for it.
constexpr absl::Duration kPipePatience = absl::Milliseconds(200);

bool Exited(int wait_status, int with) { return WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == with; }

}  // namespace

std::string Describe(const RankEnd& end) {
  const std::string who = absl::StrCat("rank ", end.rank, " (pid ", end.pid, ") ");
  if (WIFSIGNALED(end.wait_status)) {
    const int signal = WTERMSIG(end.wait_status);
    return absl::StrCat(who, "was killed by signal ", signal, " (", strsignal(signal), ")");
  }
  return absl::StrCat(who, "exited with status ", WEXITSTATUS(end.wait_status));
}

int ExitStatusOf(const RankEnd& end) {
  return WIFSIGNALED(end.wait_status) ? 128 + WTERMSIG(end.wait_status) : WEXITSTATUS(end.wait_status);
}

std::optional<RankEnd> RootCause(const std::vector<RankEnd>& failures) {
  const auto first = [&](auto counts) {
    const auto found = std::find_if(failures.begin(), failures.end(),
                                    [&](const RankEnd& end) { return counts(end.wait_status); });
    return found == failures.end() ? std::nullopt : std::optional<RankEnd>(*found);
  };
  const auto lost = [](int status) { return Exited(status, kExitPeerLost); };
  const auto ended = [](int status) { return Exited(status, kExitEndedAsWished); };
  if (const auto own = first([&](int status) { return !lost(status) && !ended(status); })) return own;
  if (const auto end = first(lost)) return end;
  if (failures.empty()) return std::nullopt;
  return failures.front();
}

Supervisor::~Supervisor() {
  SignalAll(SIGKILL);
  for (Rank& rank : ranks_) {
    if (!rank.ended) waitpid(rank.process.pid, nullptr, 0);
  }
}

void Supervisor::Add(RankProcess process, const std::string& log_path) {
  guardian_->Watch(process.pid);
  Rank& rank = ranks_.emplace_back();
  const std::string prefix = prefix_of_(process.rank);
  if (process.out.valid()) rank.streams.push_back({std::move(process.out), LineSource(prefix, out_)});
  if (process.err.valid()) rank.streams.push_back({std::move(process.err), LineSource(prefix, err_)});
  rank.process = std::move(process);
  if (log_path.empty()) return;
  rank.log_path = log_path;
  rank.log = Fd(open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!rank.log.valid()) LoseLog(&rank, errno);
}

Outcome Supervisor::Run() {
  std::vector<pollfd> entries;
  while (!AllEnded() || (!AllClosed() && absl::Now() < all_ended_at_ + kPipePatience)) {
    entries.assign({{signals_, POLLIN, 0}});
    for (const Rank& rank : ranks_) {
      for (const Stream& stream : rank.streams)
        entries.push_back({stream.fd.get(), POLLIN, 0});  // closed: passed over
    }
    if (poll(entries.data(), entries.size(), PollTimeout()) < 0 && errno != EINTR) break;
    size_t i = 1;
    for (Rank& rank : ranks_) {
      for (Stream& stream : rank.streams) {
        if (entries[i++].revents != 0) ReadStream(&rank, &stream);
      }
    }
    if (entries[0].revents != 0) ReadSignals();
    if (absl::Now() >= next_stage_) Escalate();
  }
  for (Rank& rank : ranks_) {
    for (Stream& stream : rank.streams) stream.lines.Finish();
  }
  return {RootCause(failures_), signal_, any_as_wished_ && !any_otherwise_, log_lost_};
}

bool Supervisor::AllEnded() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.ended; });
}

bool Supervisor::AllClosed() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
    return std::none_of(rank.streams.begin(), rank.streams.end(),
                        [](const Stream& stream) { return stream.fd.valid(); });
  });
}

int Supervisor::PollTimeout() const {
  const absl::Time next = std::min(next_stage_, all_ended_at_ + kPipePatience);
  return next == absl::InfiniteFuture() ? -1 : PollMilliseconds(next);
}

void Supervisor::ReadSignals() {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof(info)) == sizeof(info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) {
      Reap();
      continue;
    }
    if (signal == SIGUSR1 || signal == SIGUSR2) {
      // What comes of it is the rank's affair. What the rank has started knows nothing of it, and would die.
      for (const Rank& rank : ranks_) {
        if (!rank.ended) kill(rank.process.pid, signal);
      }
      continue;
    }
    // A second one means: at once.
    SignalAll(signal_ == 0 ? signal : SIGKILL);
    if (signal_ == 0) {
      signal_ = signal;
      stage_ = Stage::kTerminating;
      next_stage_ = absl::Now() + options_.term_grace;
    }
  }
}

void Supervisor::Reap() {
  for (Rank& rank : ranks_) {
    if (rank.ended) continue;
    int status = 0;
    if (waitpid(rank.process.pid, &status, WNOHANG) != rank.process.pid) continue;
    rank.ended = true;
    // What the rank itself started and left behind.
    kill(-rank.process.pid, SIGKILL);
    guardian_->Forget(rank.process.pid);
    if (Exited(status, kExitOk)) continue;
    (Exited(status, kExitEndedAsWished) ? any_as_wished_ : any_otherwise_) = true;
    Fail({rank.process.rank, rank.process.pid, status});
  }
  if (AllEnded()) all_ended_at_ = absl::Now();
}

void Supervisor::Fail(RankEnd end) {
  // What ends after our SIGTERM ended because of it.
  if (stage_ == Stage::kTerminating || stage_ == Stage::kKilling) return;
  failures_.push_back(end);
  stage_ = Stage::kGrace;
  // Others may still be writing what they save together.
  const bool as_wished = Exited(end.wait_status, kExitEndedAsWished);
  next_stage_ = std::min(next_stage_, absl::Now() + (as_wished ? options_.term_grace : options_.grace));
}

void Supervisor::Escalate() {
  next_stage_ = absl::InfiniteFuture();
  if (stage_ == Stage::kGrace) {
    SignalAll(SIGTERM);
    stage_ = Stage::kTerminating;
    next_stage_ = absl::Now() + options_.term_grace;
  } else if (stage_ == Stage::kTerminating) {
    SignalAll(SIGKILL);
    stage_ = Stage::kKilling;
  }
}

void Supervisor::ReadStream(Rank* rank, Stream* stream) {
  char buffer[1 << 16];
  const ssize_t got = read(stream->fd.get(), buffer, sizeof(buffer));
  if (got > 0) {
    const absl::string_view bytes(buffer, static_cast<size_t>(got));
    WriteLog(rank, bytes);
    stream->lines.Write(bytes);
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    stream->fd.Reset();
    stream->lines.Finish();
  }
}

void Supervisor::WriteLog(Rank* rank, absl::string_view bytes) {
  while (rank->log.valid() && !bytes.empty()) {
    const ssize_t written = write(rank->log.get(), bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      LoseLog(rank, errno);
    }
  }
}

void Supervisor::LoseLog(Rank* rank, int error) {
  rank->log.Reset();
  log_lost_ = true;
  const absl::Status status = PosixError(error, "write", rank->log_path);
  err_->Line(this, absl::StrCat("ftrun: ", status.message(), "; the rest of this log is lost"));
}

void Supervisor::SignalAll(int signal) {
  for (const Rank& rank : ranks_) {
    if (rank.ended) continue;
    kill(-rank.process.pid, signal);
    // A stopped rank would not notice.
    if (signal != SIGKILL) kill(-rank.process.pid, SIGCONT);
  }
}

}  // namespace ft::run
