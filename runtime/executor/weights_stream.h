// Parameters of all ranks, whole, in one stream on rank 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"
#include "runtime/collective/communicator.h"
#include "runtime/executor/executor.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// A tensor of files of weights: a parameter, or a part of one that files have in parts (Parameter.stored_as).
struct StreamedTensor {
  std::string name;
  DType dtype = DType::kF32;  // at rest: the type in which it is updated
  std::vector<int64_t> shape;
  uint64_t elements = 0;
};

enum class Streamed { kAll, kTrained };

// In the order in which their elements come by. Errors: FailedPrecondition for a plan without weights;
// InvalidArgument for parts that cannot be.
absl::StatusOr<std::vector<StreamedTensor>> TensorsOfStream(const proto::Plan& plan,
                                                            Streamed which = Streamed::kAll);

// Every rank calls it, between steps, with a communicator over all ranks. On rank 0 `take` is given the
// elements of those tensors one after the other, in pieces of any size that may hold several; it is not
// called elsewhere. Slices travel to rank 0 a few megabytes at a time, so no rank ever holds more than that
// beyond its arena. Errors: those of `take`, Unavailable for a lost peer.
absl::Status StreamWeights(const proto::Plan& plan, const Executor& executor, Communicator& communicator,
                           absl::FunctionRef<absl::Status(const std::byte* elements, uint64_t count)> take,
                           Streamed which = Streamed::kAll);

}  // namespace ft
