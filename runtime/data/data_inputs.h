// The inputs of a model as data has to fill them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/plan/inputs.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

struct DataInputs {
  std::vector<proto::Input> inputs;  // at most kMaxInputs, in the order of the plan
  int64_t seq_len = 1;               // T of sequences of tokens
  int64_t vocab_size = 0;            // 0: no input takes tokens
  std::string tokenizer_hash = {};   // that tokens are of; empty: not known
};

DataInputs DataInputsOf(const proto::Plan& plan);

// Inputs "tokens" and "targets" of sequences of `seq_len`.
DataInputs TokenInputs(int64_t vocab_size, int64_t seq_len);

// Whether sequences of tokens fill all of `inputs`: of a file that says where documents begin or does not,
// and that may have tensors beside the tokens or has none. InvalidArgument: names `path`, the input that
// wants something else, and what to do.
absl::Status CheckTokensFill(const DataInputs& inputs, const std::string& path, bool has_documents,
                             bool has_tensors);

}  // namespace ft
