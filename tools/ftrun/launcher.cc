#include "tools/ftrun/launcher.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/rendezvous/foreign_launcher.h"
#include "runtime/collective/rendezvous/tcp_store_server.h"
#include "tools/ftrun/rank_environment.h"

namespace ft::run {
namespace {

void Say(absl::string_view text) { PrintError(absl::StrCat("ftrun: ", text)); }

void WriteAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      return;  // nobody reads our output any more; the ranks go on
    }
  }
}

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);
  return variables;
}

bool IsIgnored(int number) {
  struct sigaction current;
  sigaction(number, nullptr, &current);
  return current.sa_handler == SIG_IGN;
}

// From here on these signals are read from the descriptor, by every thread that is started later, too. Those
// that are ignored stay so, here and in the ranks, as nohup and the background jobs of a script ask. SIGCHLD
// alone is needed.
absl::StatusOr<Fd> TakeSignals() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    if (!IsIgnored(number)) sigaddset(&set, number);
  }
  if (sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return ErrnoStatus("sigprocmask");
  Fd fd(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus("signalfd");
  return fd;
}

[[noreturn]] void DieOf(int number) {
  signal(number, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  raise(number);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  _exit(128 + number);
}

class Launcher {
 public:
  Launcher(const Options& options, const SupervisorOptions& supervisor_options, Fd signals,
           std::unique_ptr<Guardian> guardian)
      : options_(options),
        supervisor_options_(supervisor_options),
        signals_(std::move(signals)),
        guardian_(std::move(guardian)),
        port_(options.master_port),
        out_([](absl::string_view text) { WriteAll(STDOUT_FILENO, text); }, isatty(STDOUT_FILENO) != 0),
        err_([](absl::string_view text) { WriteAll(STDERR_FILENO, text); }, isatty(STDERR_FILENO) != 0) {}

  absl::Status Prepare() {
    if (!options_.log_dir.empty()) {
      std::error_code error;
      std::filesystem::create_directories(options_.log_dir, error);
      if (error)
        return absl::InternalError(
            absl::StrCat("cannot make --log-dir=", options_.log_dir, ": ", error.message()));
    }
    if (options_.node_rank > 0) return absl::OkStatus();
    auto server = TcpStoreServer::Start(options_.master_port);
    if (!server.ok()) {
      return absl::Status(server.status().code(),
                          absl::StrCat("cannot serve the store: ", server.status().message(),
                                       absl::IsAlreadyExists(server.status())
                                           ? "; choose another --master-port, or --standalone"
                                           : ""));
    }
    server_ = *std::move(server);
    port_ = server_->port();
    return absl::OkStatus();
  }

  absl::StatusOr<Outcome> RunAttempt(int attempt) {
    Supervisor supervisor(
        supervisor_options_, signals_.get(), guardian_.get(), &out_, &err_,
        [this](int rank) { return options_.prefix ? absl::StrCat("[rank ", rank, "] ") : std::string(); });
    const std::vector<std::string> inherited = OwnEnvironment();
    const bool capture = options_.prefix || !options_.log_dir.empty();
    for (int local_rank = 0; local_rank < options_.nproc_per_node; ++local_rank) {
      const int rank = options_.node_rank * options_.nproc_per_node + local_rank;
      FT_ASSIGN_OR_RETURN(RankProcess process, StartRank(rank, options_.command,
                                                         RankEnvironment(inherited, options_, local_rank,
                                                                         attempt, port_, AvailableCores()),
                                                         capture));
      const std::string log =
          options_.log_dir.empty() ? "" : absl::StrCat(options_.log_dir, "/rank_", rank, ".log");
      supervisor.Add(std::move(process), log);
    }
    return supervisor.Run();
  }

 private:
  const Options& options_;
  const SupervisorOptions supervisor_options_;
  const Fd signals_;
  const std::unique_ptr<Guardian> guardian_;
  uint16_t port_;
  MergedOutput out_, err_;
  std::unique_ptr<TcpStoreServer> server_;
};

int Refuse(const absl::Status& status) {
  Say(status.message());
  return absl::IsInvalidArgument(status) ? kExitBadInput : kExitIo;
}

// Started by another launcher as one of several, and not told of the others: each would be a run of its own.
absl::Status CheckNodes(const Options& options) {
  if (options.nodes_given) return absl::OkStatus();
  const auto world = FindForeignWorld([](const char* name) -> const char* { return std::getenv(name); },
                                      ProcessKind::kAgent);
  if (!world.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      world->seen,
      ", but --nnodes is not given, so each would be a run of its own that writes the same "
      "files: start one on each node with --nnodes, --node-rank and --master-addr; for runs of their "
      "own say --nnodes=1 or --standalone"));
}

// The exit status; `ended_by` becomes the signal that this process got, if it got one.
int LaunchUnlessSignalled(const Options& options, const SupervisorOptions& supervisor_options,
                          int& ended_by) {
  if (const absl::Status alone = CheckNodes(options); !alone.ok()) return Refuse(alone);
  auto signals = TakeSignals();
  if (!signals.ok()) return Refuse(signals.status());
  auto guardian = Guardian::Start();
  if (!guardian.ok()) return Refuse(guardian.status());
  Launcher launcher(options, supervisor_options, *std::move(signals), *std::move(guardian));
  if (const absl::Status ready = launcher.Prepare(); !ready.ok()) return Refuse(ready);
  bool log_lost = false;
  for (int attempt = 0;; ++attempt) {
    const auto outcome = launcher.RunAttempt(attempt);
    if (!outcome.ok()) return Refuse(outcome.status());
    log_lost |= outcome->log_lost;
    if (outcome->as_wished) {
      Say("all ranks have saved and ended, as a signal asked");
      return log_lost ? kExitIo : kExitEndedAsWished;
    }
    if (outcome->signal != 0) {
      Say(absl::StrCat("ended by signal ", outcome->signal, " (", strsignal(outcome->signal),
                       "); all ranks have ended"));
      ended_by = outcome->signal;
      return kExitOk;
    }
    if (!outcome->failure.has_value()) return log_lost ? kExitIo : kExitOk;
    const bool again = attempt < options.max_restarts;
    Say(absl::StrCat(Describe(*outcome->failure),
                     again ? absl::StrCat("; restart ", attempt + 1, " of ", options.max_restarts)
                           : "; it was the first to fail, all ranks have ended"));
    if (!again) return ExitStatusOf(*outcome->failure);
  }
}

}  // namespace

int Launch(const Options& options, const SupervisorOptions& supervisor_options) {
  int ended_by = 0;
  const int status = LaunchUnlessSignalled(options, supervisor_options, ended_by);
  if (ended_by != 0) DieOf(ended_by);  // only now: the guardian has been waited for, the store is closed
  return status;
}

}  // namespace ft::run
