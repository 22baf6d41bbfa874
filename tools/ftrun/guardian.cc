#include "tools/ftrun/guardian.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace ft::run {
namespace {

// Learns groups until the other end of the pipe is gone, together with the process that held it.
void Guard(int words) {
  std::vector<pid_t> groups;
  pid_t word = 0;
  while (read(words, &word, sizeof(word)) == sizeof(word)) {
    if (word > 0) {
      groups.push_back(word);
    } else {
      groups.erase(std::remove(groups.begin(), groups.end(), -word), groups.end());
    }
  }
  for (const pid_t group : groups) kill(-group, SIGKILL);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Guardian>> Guardian::Start() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus("pipe");
  Fd read_end(ends[0]), write_end(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) return ErrnoStatus("fork");
  if (pid == 0) {
    setpgid(0, 0);  // a Ctrl-C at the terminal is not for it
    write_end.Reset();
    const int null = open("/dev/null", O_RDWR);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, fd);
    Guard(read_end.get());
    _exit(0);
  }
  return std::unique_ptr<Guardian>(new Guardian(pid, std::move(write_end)));
}

Guardian::~Guardian() {
  words_.Reset();
  waitpid(pid_, nullptr, 0);
}

void Guardian::Tell(pid_t word) {
  // Should the guardian be gone, ranks still die with us themselves (StartRank); only what they started would
  // not.
  [[maybe_unused]] const ssize_t written = write(words_.get(), &word, sizeof(word));
}

}  // namespace ft::run
