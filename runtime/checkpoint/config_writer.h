// Writes the config.json of a model: the reverse of the descriptions of families (config_families.h).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"
#include "runtime/base/model_facts.h"

namespace ft {

// A file that transformers 4 and 5 load as it lies beside weights of `dtype`; where their spellings differ
// (rope_theta and rope_scaling, rope_parameters; torch_dtype, dtype) it has both. Nothing is said of what the
// facts do not say: tokens with a meaning are null.
//
// Of a free_transformer, which transformers does not have, the keys are those of a llama with latent_bits,
// and `architectures` is left out: only we load it.
//
// `origin`: the folder of a model of the same type, whose config.json has more than facts say: tokens with a
// meaning, names of labels. Such keys are taken from there where they change nothing of what the model
// computes; a file that cannot be read, or is of another type, gives none.
//
// What was written is read back and must give the facts, real numbers as fp32. InvalidArgument: facts that
// CheckFacts refuses, a family that we do not know, and facts that no file of the family can say, each named.
absl::StatusOr<std::string> ConfigJson(const ModelFacts& facts, DType dtype, const std::string& origin = "");

}  // namespace ft
