// Collectives over the ranks of one group.
//
// A Communicator is owned by one stream: its calls come from one thread, in the same order on every rank. The
// calls block that thread (a CPU stream is a thread with a queue; a GPU backend enqueues instead and returns
// at once).
//
// Order of sums (design: "same bits"): the sum over ranks is a fixed binary tree over rank numbers, split at
// the largest power of two below n, element by element, accumulated in fp32 (i64 sums are exact) and scaled
// once at the end. An element's result does not depend on how a buffer is cut into chunks or slices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/base/dtype.h"

namespace ft {

// What a collective is about, for error messages, time-outs and traces.
struct CollectiveLabel {
  const char* name = "";  // for instance "all_gather transformer.h.3"
  uint64_t sequence = 0;  // counts the collectives of this communicator
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // dst holds size() slices of `bytes` each; slice r becomes rank r's src. src may be the own slice of dst.
  virtual absl::Status AllGather(const void* src, void* dst, size_t bytes, const CollectiveLabel& label) = 0;

  // src holds size() slices of `count` elements each; dst becomes scale * (tree sum over ranks of the own
  // slice). dst may be the own slice of src.
  virtual absl::Status ReduceScatter(const void* src, void* dst, size_t count, DType dtype, float scale,
                                     const CollectiveLabel& label) = 0;

  // In place: data becomes scale * (tree sum over ranks). For DType::kI64 the scale must be 1.
  virtual absl::Status AllReduce(void* data, size_t count, DType dtype, float scale,
                                 const CollectiveLabel& label) = 0;

  virtual absl::Status Broadcast(void* data, size_t bytes, int root, const CollectiveLabel& label) = 0;

  // Returns once every rank has called it.
  virtual absl::Status Barrier(const CollectiveLabel& label) = 0;

  // Wakes every call in progress, here, with `reason`; later calls fail with it too. Callable from any
  // thread.
  virtual void Abort(absl::Status reason) = 0;

  // Bytes this rank holds for staging beyond the arena; fixed from the start.
  virtual size_t staging_bytes() const = 0;
};

}  // namespace ft
