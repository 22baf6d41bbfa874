// Finds the tensors a model wants in a checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/checkpoint/safetensors_reader.h"

namespace ft {

struct WantedTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<std::string> aliases;  // other names it may be stored under, e.g. HuggingFaceAliases(name)
};

// Names under which Hugging Face's checkpoints of the bare model hold a tensor of the full one:
// "transformer.wte.weight" may be stored as "wte.weight", "model.norm.weight" as "norm.weight". Empty when
// the name has no such prefix.
std::vector<std::string> HuggingFaceAliases(std::string_view name);

struct WeightMatch {
  std::vector<const SafetensorsReader::Entry*> entries;  // parallel to the wanted tensors, never null
  std::vector<std::string> unused;                       // tensors of the checkpoint that nobody wanted
  std::string note;                                      // one line about them for the user, or empty
};

// Every wanted tensor must be in the checkpoint, under its name or an alias, in the same shape and a float
// dtype. A tensor that is there under two of its names (a tied head stored beside the embedding: give
// "lm_head.weight" as an alias) must have equal bits. Tensors that nobody wants are no error. The entries
// live as long as `reader`. Errors: InvalidArgument (exit status 65), naming the first tensor at fault, the
// file, and how many others there are.
absl::StatusOr<WeightMatch> MatchWeights(const SafetensorsReader& reader,
                                         absl::Span<const WantedTensor> wanted);

}  // namespace ft
