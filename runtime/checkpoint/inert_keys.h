// Keys of a config.json that change nothing of what a model computes.
#pragma once

#include <string_view>

namespace ft {

// In every family: how the file came about, the type in which tensors are kept, token ids, generation,
// labels, what is returned beside the logits, how attention is implemented, how parameters start, dropout.
bool IsInertKey(std::string_view key);

}  // namespace ft
