// What a config.json says of positions and windows, in the spellings of transformers 4 and 5.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "absl/functional/function_ref.h"
#include "runtime/checkpoint/config_reader.h"

namespace ft {

// Rope, whose base is `theta` where nothing is said. Transformers 4 has rope_theta and rope_scaling ({"type"
// or "rope_type", "factor", ...} or null), 5 has rope_parameters with rope_theta inside; where the file has
// them side by side they must agree. `fraction` of a head is rotated where nothing is said. Reads
// max_positions before, and needs it.
void ReadRope(ConfigReader& config, double theta, double fraction = 1);
// As both versions have it. Few families rotate a part of a head only; others take no notice of what their
// file says.
void WriteRope(const ModelFacts& facts, nlohmann::json& config);
// Whether the factor of LongRoPE is that of the contexts, which need not be said.
bool HasRatioOfContexts(const ModelFacts& facts);
void WriteRopeOfPart(const ModelFacts& facts, nlohmann::json& config);

// The same where layers with a window have a base of their own: rope_local_base_freq, or a rope_parameters of
// each kind of layer. Scaling is of the others.
void ReadRopeByLayer(ConfigReader& config, double theta, double sliding_theta);
void WriteRopeByLayer(const ModelFacts& facts, nlohmann::json& config);

// Layers that see a window only: those that layer_types calls "sliding_attention" or, without it, those that
// `slides` names. `window` of 0: none of them does. Needs num_layers.
void ReadSlidingLayers(ConfigReader& config, int64_t window, std::string_view window_key,
                       absl::FunctionRef<bool(int64_t layer)> slides);
void WriteSlidingLayers(const ModelFacts& facts, nlohmann::json& config);
bool Slides(const ModelFacts& facts, int64_t layer);

}  // namespace ft
