#include "runtime/base/standard_streams.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "runtime/base/posix_error.h"
#include "runtime/base/printable.h"

namespace ft {

void HoldStandardDescriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // Lower descriptors are in use, so the system gives this one.
    [[maybe_unused]] const int held = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void LimitedFilesAreErrors() { signal(SIGXFSZ, SIG_IGN); }

absl::Status PrintOut(std::string_view raw) {
  const std::string text = Printable(raw);
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return absl::OkStatus();
  return PosixError(errno, "write", "standard output");
}

void PrintError(std::string_view line) {
  const std::string text = OneLine(line) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace ft
