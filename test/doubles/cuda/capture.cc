#include "test/doubles/cuda/capture.h"

#include <algorithm>

namespace ft::cuda::emulation {

const EmulatedStream* Unjoined(const Capture& capture) {
  std::vector<bool> joined(capture.nodes.size(), false);
  for (int node : capture.origin->last) joined[node] = true;
  // Nodes come after those with smaller numbers.
  for (int node = static_cast<int>(joined.size()) - 1; node >= 0; --node) {
    if (!joined[node]) continue;
    for (int before : capture.nodes[node].after) joined[before] = true;
  }
  for (const EmulatedStream* stream : capture.streams) {
    if (!std::all_of(stream->last.begin(), stream->last.end(), [&](int node) { return joined[node]; }))
      return stream;
  }
  return nullptr;
}

std::vector<int> RunOrder(const std::vector<Node>& nodes, Schedule schedule) {
  const int count = static_cast<int>(nodes.size());
  std::vector<int> order;
  if (schedule == Schedule::kAtOnce) {
    for (int node = 0; node < count; ++node) order.push_back(node);
    return order;
  }
  std::vector<bool> done(nodes.size(), false);
  while (static_cast<int>(order.size()) < count) {
    for (int node = count - 1; node >= 0; --node) {
      const std::vector<int>& after = nodes[node].after;
      if (done[node] || !std::all_of(after.begin(), after.end(), [&](int before) { return done[before]; }))
        continue;
      done[node] = true;
      order.push_back(node);
      break;
    }
  }
  return order;
}

}  // namespace ft::cuda::emulation
