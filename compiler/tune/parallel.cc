#include "compiler/tune/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace ft::compiler {

absl::Status inParallel(size_t count, const std::function<absl::Status(size_t)> &work) {
  std::vector<absl::Status> done(count);
  std::atomic<size_t> next = 0;
  const auto take = [&] {
    for (size_t i = next++; i < count; i = next++)
      done[i] = work(i);
  };
  std::vector<std::thread> others(std::min<size_t>(count, std::max(1u, std::thread::hardware_concurrency())));
  for (std::thread &other : others)
    other = std::thread(take);
  for (std::thread &other : others)
    other.join();
  for (const absl::Status &status : done)
    if (!status.ok())
      return status;
  return absl::OkStatus();
}

} // namespace ft::compiler
