#include "runtime/backends/cpu/device/cpu_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "runtime/base/thread.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace ft {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kUnknown = std::numeric_limits<uint64_t>::max();

// What the machine, or the container we are in, can still give; kUnknown when nothing says.
uint64_t AvailableBytes() {
  uint64_t available = kUnknown;
  std::ifstream meminfo("/proc/meminfo");
  for (std::string key, rest; meminfo >> key;) {
    if (key == "MemAvailable:") {
      uint64_t kib = 0;
      if (meminfo >> kib) available = kib << 10;
      break;
    }
    std::getline(meminfo, rest);
  }
  std::ifstream limit("/sys/fs/cgroup/memory.max");
  if (uint64_t bytes = 0; limit >> bytes) available = std::min(available, bytes);
  return available;
}

absl::Status TooLarge(uint64_t bytes, uint64_t available) {
  constexpr double kGib = 1 << 30;
  return absl::ResourceExhaustedError(
      available == kUnknown ? absl::StrFormat("the arena needs %d bytes (%.2f GiB), which the system refuses",
                                              bytes, bytes / kGib)
                            : absl::StrFormat("the arena needs %d bytes (%.2f GiB), only %d (%.2f GiB) are "
                                              "available; use a smaller batch, more ranks "
                                              "or a strategy that shards more",
                                              bytes, bytes / kGib, available, available / kGib));
}

class CpuArena final : public Memory {
 public:
  CpuArena(void* mapping, uint64_t mapped, void* data, uint64_t bytes)
      : mapping_(mapping), mapped_(mapped), data_(data), bytes_(bytes) {}
  ~CpuArena() override { munmap(mapping_, mapped_); }

  void* data() const override { return data_; }
  uint64_t bytes() const override { return bytes_; }

 private:
  void* mapping_;
  uint64_t mapped_;
  void* data_;
  uint64_t bytes_;
};

void Touch(char* begin, char* end) {
  if (begin >= end || madvise(begin, end - begin, MADV_POPULATE_WRITE) == 0) return;
  for (char* page = begin; page < end; page += kPage) *static_cast<volatile char*>(page) = 0;
}

void TouchAll(char* data, uint64_t bytes, int num_threads) {
  const uint64_t pages = (bytes + kHugePage - 1) / kHugePage;
  const uint64_t share = (pages + num_threads - 1) / num_threads * kHugePage;
  std::vector<std::thread> threads;
  for (uint64_t begin = share; begin < bytes; begin += share) {
    char* const end = data + std::min(bytes, begin + share);
    absl::StatusOr<std::thread> thread = StartThread("", [from = data + begin, end] { Touch(from, end); });
    if (!thread.ok()) {
      Touch(data + begin, end);  // here, then
      continue;
    }
    threads.push_back(*std::move(thread));
  }
  Touch(data, data + std::min(bytes, share));
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Memory>> AllocateCpuArena(uint64_t bytes, int num_threads) {
  const uint64_t available = AvailableBytes();
  if (bytes > available || bytes > kUnknown / 2) return TooLarge(bytes, available);
  const uint64_t rounded = (std::max(bytes, uint64_t{1}) + kPage - 1) / kPage * kPage;
  const uint64_t mapped = rounded + kHugePage;
  void* mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return TooLarge(bytes, available);
  const uint64_t address = reinterpret_cast<uint64_t>(mapping);
  char* data = reinterpret_cast<char*>((address + kHugePage - 1) / kHugePage * kHugePage);
  madvise(data, rounded, MADV_HUGEPAGE);  // a hint: where there are none, small pages do
  auto arena = std::make_unique<CpuArena>(mapping, mapped, data, bytes);
  TouchAll(data, rounded, std::max(1, num_threads));
  return arena;
}

}  // namespace ft
