// A model's facts against the config.json that lies beside weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/model_facts.h"

namespace ft {

// Whether two values of one fact are the same to a model: real numbers are compared as fp32, which they are
// computed in.
bool SameFact(const FactValue& a, const FactValue& b);

struct ConfigComparison {
  // Each in words: what the file says, what the model is. With any of them the weights are of another model.
  std::vector<std::string> differences;
  std::vector<std::string> notes;  // what the user should know, though nothing is computed differently
  bool no_model_type = false;      // it is not transformers' file, or is of a time before model types
};

// Reads the config.json `path`, as transformers 4 or 5 write it, and compares it with `model`, which is
// trained on sequences of `seq_len`. Values are compared by SameFact. A window as long as the sequences hides
// nothing and is a note; so are dropout, and sequences longer than max_position_embeddings where positions
// are computed. A key that is not understood is a difference, unless it is known to change nothing or its
// value says that nothing is asked for (null, false, empty).
// InvalidArgument: not the JSON object that it should be, or larger than 16 MiB; the errors of
// MappedFile::Open.
absl::StatusOr<ConfigComparison> CompareConfig(const std::string& path, const ModelFacts& model,
                                               int64_t seq_len);

}  // namespace ft
