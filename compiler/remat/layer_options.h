// The choices for a layer that are worth considering.
#pragma once

#include "compiler/remat/layer_memory.h"

namespace ft::compiler {

struct LayerOption {
  Choices choices; // of the graph's forward ops
  LayerUse use;
};

/// Choices that no other beats in saved bytes, both peaks and seconds, cheapest first: the first is to keep
/// everything. For up to 14 ops that may be recomputed all subsets are tried, for more those that one change
/// at a time reaches. A 500th of the saved bytes, or more until at most some `most` options are left, is no
/// reason to pay for another option; that which saves least is always there.
std::vector<LayerOption> layerOptions(const LayerGraph &graph, size_t most = 128);

/// Everything that may be is recomputed, the rest kept; with copies allowed, also with the rest offloaded.
std::vector<LayerOption> smallestOptions(const LayerGraph &graph);

} // namespace ft::compiler
