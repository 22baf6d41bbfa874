#include "runtime/base/resident_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace ft {
namespace {

// "VmRSS:     1234 kB" in bytes; 0 when there is no such line.
uint64_t Field(std::string_view text, std::string_view name) {
  const size_t line = text.find(name);
  if (line == text.npos) return 0;
  std::string_view rest = text.substr(line + name.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  uint64_t kib = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), kib);
  return kib << 10;
}

}  // namespace

absl::StatusOr<ResidentMemory> ResidentMemoryOfProcess() {
  char text[8192];
  const int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  const ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof(text));
  if (fd >= 0) close(fd);
  const std::string_view status(text, length < 0 ? 0 : static_cast<size_t>(length));
  const ResidentMemory memory{.now = Field(status, "\nVmRSS:"), .peak = Field(status, "\nVmHWM:")};
  if (memory.now == 0)
    return absl::NotFoundError("/proc/self/status does not say how much memory is resident");
  return memory;
}

}  // namespace ft
