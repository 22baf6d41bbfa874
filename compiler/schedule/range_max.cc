#include "compiler/schedule/range_max.h"

#include <algorithm>

namespace ft::compiler {

RangeMax::RangeMax(llvm::ArrayRef<int64_t> values) : size(values.size()) {
  if (size == 0)
    return;
  nodes.resize(4 * size);
  build(0, 0, size, values);
}

void RangeMax::build(size_t node, size_t low, size_t high, llvm::ArrayRef<int64_t> values) {
  if (high - low == 1) {
    nodes[node].most = values[low];
    return;
  }
  size_t middle = low + (high - low) / 2;
  build(2 * node + 1, low, middle, values);
  build(2 * node + 2, middle, high, values);
  nodes[node].most = std::max(nodes[2 * node + 1].most, nodes[2 * node + 2].most);
}

int64_t RangeMax::at(size_t index) const {
  int64_t sum = 0;
  size_t node = 0, low = 0, high = size;
  while (high - low > 1) {
    sum += nodes[node].added;
    size_t middle = low + (high - low) / 2;
    bool left = index < middle;
    node = 2 * node + (left ? 1 : 2);
    (left ? high : low) = middle;
  }
  return sum + nodes[node].most;
}

void RangeMax::add(size_t begin, size_t end, int64_t value) {
  if (begin < end)
    add(0, 0, size, begin, end, value);
}

void RangeMax::add(size_t node, size_t low, size_t high, size_t begin, size_t end, int64_t value) {
  if (end <= low || high <= begin)
    return;
  if (begin <= low && high <= end) {
    nodes[node].most += value;
    nodes[node].added += value;
    return;
  }
  size_t middle = low + (high - low) / 2;
  add(2 * node + 1, low, middle, begin, end, value);
  add(2 * node + 2, middle, high, begin, end, value);
  nodes[node].most = std::max(nodes[2 * node + 1].most, nodes[2 * node + 2].most) + nodes[node].added;
}

template <bool First>
std::optional<size_t> RangeMax::find(size_t node, size_t low, size_t high, size_t begin, size_t end,
                                     int64_t bound) const {
  if (end <= low || high <= begin || nodes[node].most <= bound)
    return std::nullopt;
  if (high - low == 1)
    return low;
  size_t middle = low + (high - low) / 2;
  auto left = [&] { return find<First>(2 * node + 1, low, middle, begin, end, bound - nodes[node].added); };
  auto right = [&] { return find<First>(2 * node + 2, middle, high, begin, end, bound - nodes[node].added); };
  std::optional<size_t> found = First ? left() : right();
  return found ? found : First ? right() : left();
}

std::optional<size_t> RangeMax::firstAbove(size_t begin, size_t end, int64_t bound) const {
  return begin < end ? find<true>(0, 0, size, begin, end, bound) : std::nullopt;
}

std::optional<size_t> RangeMax::lastAbove(size_t begin, size_t end, int64_t bound) const {
  return begin < end ? find<false>(0, 0, size, begin, end, bound) : std::nullopt;
}

} // namespace ft::compiler
