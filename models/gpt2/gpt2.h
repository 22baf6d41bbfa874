// GPT-2 (A. Radford et al., "Language Models are Unsupervised Multitask Learners", 2019), as Hugging Face
// names and stores it.
#pragma once

#include "models/base/model_spec.h"

namespace ft::models {

ModelSpec gpt2Spec();

} // namespace ft::models
