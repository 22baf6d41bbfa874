#include "tools/ftrun/rank_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace ft::run {
namespace {

struct Pipe {
  Fd read, write;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus("pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// In the child, after fork: system calls only. Returns only when something failed, errno set.
void BecomeRank(pid_t parent, int out, int err, char* const* argv, char* const* envp) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the line above
  setpgid(0, 0);
  const int null = open("/dev/null", O_RDONLY);
  if (null >= 0) dup2(null, STDIN_FILENO);
  if (out >= 0) dup2(out, STDOUT_FILENO);
  if (err >= 0) dup2(err, STDERR_FILENO);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  execvpe(argv[0], argv, envp);
}

absl::Status CannotRun(const std::string& program, int error) {
  const std::string message = absl::StrCat("cannot run '", program, "': ", std::strerror(error));
  if (error == ENOENT)
    return absl::NotFoundError(absl::StrCat(message, "; check the path, or that it is in PATH"));
  if (error == EACCES) return absl::PermissionDeniedError(absl::StrCat(message, "; is it executable?"));
  return absl::InternalError(message);
}

}  // namespace

absl::StatusOr<RankProcess> StartRank(int rank, const std::vector<std::string>& command,
                                      const std::vector<std::string>& environment, bool capture) {
  Pipe out, err;
  FT_ASSIGN_OR_RETURN(Pipe failure, MakePipe());  // closed by a successful exec
  if (capture) {
    FT_ASSIGN_OR_RETURN(out, MakePipe());
    FT_ASSIGN_OR_RETURN(err, MakePipe());
  }
  const std::vector<char*> argv = Pointers(command), envp = Pointers(environment);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return ErrnoStatus("fork");
  if (pid == 0) {
    BecomeRank(parent, out.write.get(), err.write.get(), argv.data(), envp.data());
    const int error = errno;
    [[maybe_unused]] const ssize_t written = write(failure.write.get(), &error, sizeof(error));
    _exit(127);
  }
  setpgid(pid, pid);  // here too: whoever comes first
  failure.write.Reset();
  int error = 0;
  ssize_t got = 0;
  do {
    got = read(failure.read.get(), &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  if (got == sizeof(error)) {
    waitpid(pid, nullptr, 0);
    return CannotRun(command[0], error);
  }
  for (const Fd* fd : {&out.read, &err.read}) {
    if (fd->valid()) fcntl(fd->get(), F_SETFL, O_NONBLOCK);
  }
  return RankProcess{rank, pid, std::move(out.read), std::move(err.read)};
}

}  // namespace ft::run
