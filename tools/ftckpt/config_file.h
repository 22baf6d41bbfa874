// The config.json beside weights.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"
#include "runtime/checkpoint/state/manifest.h"

namespace ft::ckpt {

// Its text, from the model's facts in the manifest, beside weights of this type. Errors: InvalidArgument for
// facts that are not sensible or not there, or that no config.json can say; Unimplemented where this program
// cannot write one.
absl::StatusOr<std::string> ConfigText(const proto::Manifest& manifest, DType weights);

}  // namespace ft::ckpt
