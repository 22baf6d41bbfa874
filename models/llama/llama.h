// Llama (H. Touvron et al., 2023; Llama 3, 2024) and models of its shape such as Qwen2, as Hugging Face names
// and stores them.
#pragma once

#include "models/base/model_spec.h"

namespace ft::models {

ModelSpec llamaSpec();

} // namespace ft::models
