// Parameters from all ranks into one safetensors file.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/collective/communicator.h"
#include "runtime/executor/executor.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Every rank calls it, between steps, with a communicator over all ranks; rank 0 writes `path`, whole tensors
// in fp32 (bf16 where that is all there is) under their Hugging Face names, tied ones once, and puts it in
// place when all is there. Slices travel to rank 0 a few megabytes at a time, so no rank ever holds more than
// that beyond its arena. Errors: of the file system on rank 0, Unavailable for a lost peer.
absl::Status SaveWeights(const proto::Plan& plan, const Executor& executor, Communicator& communicator,
                         const std::string& path);

// Bytes of the tensors in that file, without its header. Errors: as SaveWeights for a plan without weights.
absl::StatusOr<uint64_t> BytesOfWeights(const proto::Plan& plan);

}  // namespace ft
