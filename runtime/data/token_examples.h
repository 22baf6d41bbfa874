// A file of tokens as examples of a model.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/data/data_file.h"
#include "runtime/data/data_inputs.h"

namespace ft {

// Errors: those of CheckTokensFill() and OpenTokenFile(). `inputs` must outlive it.
absl::StatusOr<std::unique_ptr<DataFile>> OpenTokenExamples(const std::string& path, const DataInputs& inputs,
                                                            DataFormat format);

}  // namespace ft
