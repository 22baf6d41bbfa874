#include "runtime/data/document_tensors.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/status_macros.h"
#include "runtime/plan/inputs.h"

namespace ft {

absl::StatusOr<DocumentTensors> DocumentTensors::Make(absl::Span<const FtdFile::Input> tensors,
                                                      DataInputs& inputs, const std::string& path) {
  DocumentTensors made;
  for (const FtdFile::Input& tensor : tensors) {
    const auto input = std::find_if(
        inputs.inputs.begin(), inputs.inputs.end(),
        [&](const proto::Input& each) { return each.name() == tensor.name && !IsConstant(each); });
    if (input == inputs.inputs.end())
      return absl::InvalidArgumentError(
          fmt::format("'{}': no input of the model takes tensor 'input.{}'", path, tensor.name));
    input->set_filling(proto::Input::TENSOR);
    const std::string what = fmt::format("'{}': tensor 'input.{}'", path, tensor.name);
    FT_ASSIGN_OR_RETURN(RowTensor rows,
                        RowTensor::Make(tensor.dtype, tensor.shape, tensor.bytes, *input, what));
    made.tensors_.emplace_back(static_cast<size_t>(input - inputs.inputs.begin()), rows);
  }
  for (size_t i = 0; i < inputs.inputs.size(); ++i) {
    const proto::Input& input = inputs.inputs[i];
    const bool has = std::any_of(made.tensors_.begin(), made.tensors_.end(),
                                 [i](const auto& tensor) { return tensor.first == i; });
    if (has || IsOfTokens(input.filling()) || input.filling() == proto::Input::VALUE) continue;
    return absl::InvalidArgumentError(
        fmt::format("'{}' has no tensor 'input.{}', which the model's input '{}' needs: {} for each document",
                    path, input.name(), input.name(), ExampleText(input)));
  }
  return made;
}

}  // namespace ft
