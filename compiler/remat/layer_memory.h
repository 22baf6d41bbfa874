// What a layer takes of memory and time under given choices, from exact live ranges.
#pragma once

#include "compiler/remat/layer_graph.h"

namespace ft::compiler {

enum class Choice : uint8_t { Keep, Recompute, Offload };

/// Of each forward op of a LayerGraph.
using Choices = std::vector<Choice>;

struct LayerUse {
  uint64_t saved = 0;        // bytes that wait on the device from its forward for any backward
  uint64_t forwardPeak = 0;  // most bytes during its forward: its own and the background
  uint64_t backwardPeak = 0; // and during its backward, with gradients and what is computed again
  double seconds = 0;        // spent because of the choices: ops computed again, copies
};

/// Goes through forward, then backward in which ops are computed again right before they are needed, as
/// ft-apply-remat does. With `executed`, says which forward ops are computed again at all.
LayerUse useOfLayer(const LayerGraph &graph, const Choices &choices, std::vector<bool> *executed = nullptr);

} // namespace ft::compiler
