#include "runtime/base/host_pages.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_room.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/thread.h"

namespace ft {
namespace {

constexpr uint64_t kPart = uint64_t{64} << 20;  // that a thread fills at a time
constexpr size_t kSmallestPage = 4096;
constexpr int kMostNodes = 1024;
#ifdef MADV_POPULATE_WRITE
constexpr int kPopulate = MADV_POPULATE_WRITE;
#else
constexpr int kPopulate = 23;  // of Linux 5.14
#endif

absl::Status CheckRoom(uint64_t bytes) {
  for (const MemoryPool& pool : MemoryPoolsOfProcess())
    if (pool.room < bytes)
      return absl::ResourceExhaustedError(
          absl::StrCat("the ", pool.name, " has room for ", pool.room, " bytes, not for ", bytes));
  return absl::OkStatus();
}

// Where the system refuses, as in some containers, they lie where it likes.
bool PreferNode(std::byte* data, uint64_t bytes, int node) {
  if (node < 0 || node >= kMostNodes) return false;
  constexpr int kBits = 8 * sizeof(unsigned long);
  unsigned long nodes[kMostNodes / kBits] = {};
  nodes[node / kBits] = 1UL << (node % kBits);
  return syscall(SYS_mbind, data, bytes, MPOL_PREFERRED, nodes, kMostNodes + 1, 0) == 0;
}

void Fill(std::byte* data, uint64_t bytes) {
  if (madvise(data, bytes, kPopulate) == 0) return;
  for (uint64_t at = 0; at < bytes; at += kSmallestPage)
    *static_cast<volatile std::byte*>(data + at) = std::byte{0};
}

void FillByThreads(std::byte* data, uint64_t bytes, int threads) {
  std::atomic<uint64_t> next = 0;
  const auto work = [&] {
    for (uint64_t at = next.fetch_add(kPart); at < bytes; at = next.fetch_add(kPart))
      Fill(data + at, std::min(kPart, bytes - at));
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads && static_cast<uint64_t>(i) * kPart < bytes; ++i) {
    absl::StatusOr<std::thread> thread = StartThread("to fill host memory", work);
    if (!thread.ok()) break;  // then there are fewer
    others.push_back(*std::move(thread));
  }
  work();
  for (std::thread& thread : others) thread.join();
}

}  // namespace

absl::StatusOr<std::unique_ptr<HostPages>> HostPages::Create(uint64_t bytes, const Wish& wish) {
  FT_RETURN_IF_ERROR(CheckRoom(bytes));
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    return absl::ResourceExhaustedError(absl::StrCat("the system maps no ", bytes, " bytes of memory"));
  std::unique_ptr<HostPages> pages(new HostPages(data, bytes));
  auto* const begin = static_cast<std::byte*>(data);
  madvise(data, bytes, MADV_HUGEPAGE);  // where there are none, small ones do
  pages->is_on_node_ = PreferNode(begin, bytes, wish.numa_node);
  FillByThreads(begin, bytes, wish.threads);
  return pages;
}

HostPages::~HostPages() { munmap(data_, bytes_); }

}  // namespace ft
