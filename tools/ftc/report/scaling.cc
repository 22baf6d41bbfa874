#include "tools/ftc/report/scaling.h"

#include <algorithm>

namespace ftc {

std::vector<int> UsualWorldSizes(int ranks) {
  constexpr int64_t kUsual = 1024, kMost = 1 << 20;
  const int64_t most = std::clamp(int64_t{8} * ranks, kUsual, kMost);
  std::vector<int> sizes;
  for (int64_t size = 1; size <= most; size *= 2) sizes.push_back(static_cast<int>(size));
  return sizes;
}

ScalingRow RowOf(const Explained& explained) {
  return {.mesh = explained.bound.mesh, .cost = explained.cost, .arena_bytes = explained.bound.arena_bytes()};
}

}  // namespace ftc
