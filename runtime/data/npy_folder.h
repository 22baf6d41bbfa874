// A folder of arrays of NumPy as examples of a model.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/data/data_file.h"
#include "runtime/data/data_inputs.h"

namespace ft {

// Whether `path` is a folder with an .npy file in it.
bool IsNpyFolder(const std::string& path);

// For each input NAME.npy, or NAME-*.npy in the order of their names, one after the other: [examples, ...] of
// the shape of an example; of a constant NAME.npy of its own shape. Types as RowTensor has them; uint8 for an
// f32 input is made float by preprocessor_config.json in the folder, as transformers has it: x *
// rescale_factor, less image_mean, by image_std, of the first axis behind the examples. `inputs` must outlive
// it. Errors: those of NpyArray::Open and RowTensor::Make; InvalidArgument, one line that names the folder
// and the input or file: an input without arrays, arrays or other files that no input takes, other numbers of
// examples, uint8 without preprocessor_config.json, or one that cannot be used.
absl::StatusOr<std::unique_ptr<DataFile>> OpenNpyFolder(const std::string& path, const DataInputs& inputs);

}  // namespace ft
