// The NCCL that tests on a GPU speak with: the library, or its stand-in for emulated GPUs. A program links
// one.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/collective/nccl/nccl_api.h"

namespace ft::conformance {

// Errors: FailedPrecondition without a library.
absl::StatusOr<std::shared_ptr<nccl::NcclApi>> OpenNccl();

}  // namespace ft::conformance
