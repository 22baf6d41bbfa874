// Graphs of the emulated driver: from a capture, and how they run.
#pragma once

#include <string>
#include <vector>

#include "test/doubles/cuda/emulated_driver.h"

namespace ft::cuda::emulation {

// A stream of the capture with nodes that its origin does not come after; null when all have joined.
const EmulatedStream* Unjoined(const Capture& capture);

// An order in which the nodes may run.
std::vector<int> RunOrder(const std::vector<Node>& nodes, Schedule schedule);

}  // namespace ft::cuda::emulation
