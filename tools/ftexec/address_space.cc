#include "tools/ftexec/address_space.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "runtime/base/exit_status.h"

namespace ft {
namespace {

constexpr size_t kPerThread = size_t{129} << 20;
// What else libraries and threads take until the program can say what it lacks: 110 MiB were seen.
constexpr size_t kProgram = size_t{128} << 20;

// Whether `bytes` more can be mapped. System calls only: it runs before libraries are set up.
bool HasRoom(size_t bytes) {
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
  void* probe =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (probe == MAP_FAILED) return false;
  munmap(probe, bytes);
  return true;
}

void CheckBeforeLibraries(int, char**, char**) {
  if (HasRoom(kPerThread + kProgram)) return;
  static constexpr char kLine[] =
      "ftexec: the limit on memory (ulimit -v) leaves no room for the 128 MiB that OpenBLAS takes at the "
      "start; "
      "allow more\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kLine, sizeof(kLine) - 1);
  _exit(kExitIo);
}

// Runs before the constructors of all libraries (System V ABI, "Initialization and Termination Functions").
__attribute__((section(".preinit_array"), used)) void (*before_libraries)(int, char**,
                                                                          char**) = CheckBeforeLibraries;

}  // namespace

absl::Status CheckAddressSpace(int threads) {
  if (HasRoom(kPerThread * static_cast<size_t>(threads))) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the limit on memory (ulimit -v) leaves no room for the working memory of ", threads,
                   " threads, 128 MiB each; allow more, or take fewer --threads"));
}

}  // namespace ft
