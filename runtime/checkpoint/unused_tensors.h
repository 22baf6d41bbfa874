// Tensors of a checkpoint that the model has no place for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"

namespace ft {

// Buffers that older versions of transformers saved and newer ones ignore: masks ("h.0.attn.bias",
// "h.0.attn.masked_bias") and rope's frequencies ("rotary_emb.inv_freq").
bool IsIgnoredBuffer(std::string_view tensor);

// A list in little room: names that differ in their numbers only are one, "h.*.ln_1.bias (12: 0 to 11)".
std::string NamesText(absl::Span<const std::string> names);

}  // namespace ft
