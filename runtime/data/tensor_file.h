// A safetensors file as examples of a model.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/data/data_file.h"
#include "runtime/data/data_inputs.h"

namespace ft {

// Whether the file is a safetensors file, by its name or by what it begins with. Errors: those of the system.
absl::StatusOr<bool> IsTensorFile(const std::string& path);

// A tensor for each input, of its name and type: [examples, ...] of the shape of an example, or of the shape
// of a constant. Integers are looked at once, so that none that chooses no row or class reaches a step.
// `inputs` must outlive it. Errors: those of SafetensorsReader::Open; InvalidArgument, one line that names
// the file and the tensor, for one that is missing, that no input takes, of another type or shape, with
// another number of examples than the others, or with a value that an input cannot have.
absl::StatusOr<std::unique_ptr<DataFile>> OpenTensorFile(const std::string& path, const DataInputs& inputs);

}  // namespace ft
