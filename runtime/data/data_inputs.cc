#include "runtime/data/data_inputs.h"

#include <fmt/format.h>

namespace ft {

DataInputs DataInputsOf(const proto::Plan& plan) {
  return {.inputs = {plan.inputs().begin(), plan.inputs().end()},
          .seq_len = static_cast<int64_t>(plan.seq_len()),
          .vocab_size = static_cast<int64_t>(plan.vocab_size()),
          .tokenizer_hash = plan.tokenizer_hash()};
}

DataInputs TokenInputs(int64_t vocab_size, int64_t seq_len) {
  DataInputs made{.inputs = {}, .seq_len = seq_len, .vocab_size = vocab_size, .tokenizer_hash = {}};
  for (const bool targets : {false, true}) {
    proto::Input& input = made.inputs.emplace_back();
    input.set_name(targets ? "targets" : "tokens");
    input.set_dtype(proto::I32);
    input.add_shape(1);
    input.add_shape(static_cast<uint64_t>(seq_len));
    input.set_filling(targets ? proto::Input::TARGETS : proto::Input::TOKENS);
    input.set_ids_below(static_cast<uint64_t>(vocab_size));
    input.set_may_be_left_out(targets);
    input.set_counted(targets);
  }
  return made;
}

absl::Status CheckTokensFill(const DataInputs& inputs, const std::string& path, bool has_documents,
                             bool has_tensors) {
  bool takes_tokens = false;
  for (const proto::Input& input : inputs.inputs) {
    const proto::Input::Filling filling = input.filling();
    takes_tokens |= filling == proto::Input::TOKENS || filling == proto::Input::TARGETS;
    if (filling == proto::Input::SEGMENTS && !has_documents)
      return absl::InvalidArgumentError(fmt::format(
          "'{}' does not say where documents begin, so it cannot fill the model's input '{}' ({}); give .ftd "
          "files (ftc tokenize), or build the model without --packed",
          path, input.name(), ExampleText(input)));
    if (filling == proto::Input::POSITIONS && input.ids_below() > 0 &&
        static_cast<int64_t>(input.ids_below()) < inputs.seq_len)
      return absl::InvalidArgumentError(
          fmt::format("'{}': the model has {} positions, fewer than the {} tokens of a sequence", path,
                      input.ids_below(), inputs.seq_len));
    if (IsOfTokens(filling) || filling == proto::Input::VALUE) continue;
    if (has_tensors && filling == proto::Input::TENSOR) continue;
    return absl::InvalidArgumentError(
        fmt::format("'{}' is read as tokens, which cannot fill the model's input '{}' ({}); give a "
                    "safetensors file with a tensor for each input, its first axis the examples",
                    path, input.name(), ExampleText(input)));
  }
  if (takes_tokens) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "'{}' is read as tokens, which no input of the model takes; give a safetensors file", path));
}

}  // namespace ft
