// What a config.json says of positions and windows, in the spellings of transformers 4 and 5.
#pragma once

#include "absl/functional/function_ref.h"
#include "runtime/checkpoint/config_reader.h"

namespace ft {

// Rope, whose base is `theta` where nothing is said. Transformers 4 has rope_theta and rope_scaling ({"type"
// or "rope_type", "factor", ...} or null), 5 has rope_parameters with rope_theta inside; where the file has
// them side by side they must agree. Reads max_positions before, and needs it.
void ReadRope(ConfigReader& config, double theta);

// Layers that see a window only: those that layer_types calls "sliding_attention" or, without it, those that
// `slides` names. `window` of 0: none of them does. Needs num_layers.
void ReadSlidingLayers(ConfigReader& config, int64_t window, std::string_view window_key,
                       absl::FunctionRef<bool(int64_t layer)> slides);

}  // namespace ft
