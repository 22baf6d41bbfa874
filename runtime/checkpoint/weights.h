// Finds the tensors a model wants in a checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "runtime/checkpoint/safetensors_reader.h"

namespace ft {

struct WantedTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<std::string> aliases;  // other names it may be stored under, e.g. HuggingFaceAliases(name)
  std::string stored_as = {};  // tensors that may be there in its place, one behind the other: a pattern
  bool may_be_missing = false;
};

// Names under which Hugging Face's checkpoints of the bare model hold a tensor of the full one:
// "transformer.wte.weight" may be stored as "wte.weight", "model.norm.weight" as "norm.weight". Empty when
// the name has no such prefix.
std::vector<std::string> HuggingFaceAliases(std::string_view name);

struct WeightMatch {
  // Parallel to the wanted tensors: the entries that have one, behind one another; none only where there are
  // problems, or it may be missing.
  std::vector<std::vector<const SafetensorsReader::Entry*>> entries;
  std::vector<std::string> problems;  // what keeps the checkpoint from being this model's, in words
  std::string note;                   // one line about tensors that are left out, or empty
};

// Every wanted tensor must be in the checkpoint, unless it may be missing, under its name or an alias or,
// where it is under neither, in its stored parts, in the same shape and a float dtype. A tensor that is there
// under two of its names (a tied head stored beside the embedding: give "lm_head.weight" as an alias) must
// have equal bits. The first tensor at fault is a problem, which counts the others. Tensors that nobody wants
// are one too, unless they are buffers that transformers ignores (IsIgnoredBuffer) or match a glob of
// `allow_unused`. The entries live as long as `reader`.
WeightMatch MatchWeights(const SafetensorsReader& reader, absl::Span<const WantedTensor> wanted,
                         absl::Span<const std::string> allow_unused = {});

}  // namespace ft
