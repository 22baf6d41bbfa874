// Collectives over the ranks of one group.
//
// A Communicator is owned by one stream: its calls come from one thread, in the same order on every rank of
// the group. The calls block that thread (a CPU stream is a thread with a queue; a GPU backend enqueues
// instead and returns at once). Ranks are counted inside the group; messages name them as the whole run
// counts them.
//
// Each call moves one or more parts, a bucket: all parts together cost the latency of one.
//
// Order of sums (design: "same bits"): the sum over ranks is a fixed binary tree over rank numbers, split at
// the largest power of two below n, element by element, accumulated in fp32 (i64 sums are exact) and rounded
// once at the end. Nothing is divided: who wants a mean multiplies what it reads. An element's result does
// not depend on how a buffer is cut into chunks or slices, nor on what else is in its bucket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/base/dtype.h"

namespace ft {

struct InFlight;  // runtime/device/device.h

// What a collective is about, for error messages, time-outs and traces.
struct CollectiveLabel {
  const char* name = "";  // for instance "all_gather transformer.h.3"
  uint64_t sequence = 0;  // counts the collectives of this communicator
};

// A part of an all_gather. dst holds size() slices of `bytes` each; slice r becomes rank r's src. src may be
// the own slice of dst.
struct GatherPart {
  const void* src = nullptr;
  void* dst = nullptr;
  size_t bytes = 0;
};

// A part of a reduction.
struct ReducePart {
  const void* src = nullptr;
  void* dst = nullptr;
  size_t count = 0;  // elements of dst
  DType dtype = DType::kF32;
};

// What goes to another rank in an all_to_all, and what comes from one; own parts are copied. The k-th part
// that a rank sends another is the k-th that that one receives from it, and as long.
struct SendPart {
  const void* src = nullptr;
  size_t bytes = 0;
  int peer = 0;
};
struct ReceivePart {
  void* dst = nullptr;
  size_t bytes = 0;
  int peer = 0;
};
struct AllToAllParts {
  absl::Span<const SendPart> sends;
  absl::Span<const ReceivePart> receives;
  size_t most_bytes = 0;  // that one rank sends another; the same on all ranks
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  virtual absl::Status AllGather(absl::Span<const GatherPart> parts, const CollectiveLabel& label) = 0;

  // Each src holds size() slices of `count` elements; dst becomes the tree sum over ranks of the own
  // slice. dst may be the own slice of src.
  virtual absl::Status ReduceScatter(absl::Span<const ReducePart> parts, const CollectiveLabel& label) = 0;

  // Each dst becomes the tree sum over ranks of src. dst may be src.
  virtual absl::Status AllReduce(absl::Span<const ReducePart> parts, const CollectiveLabel& label) = 0;

  // No part that is received shares a byte with one that is sent.
  virtual absl::Status AllToAll(const AllToAllParts& parts, const CollectiveLabel& label) = 0;

  virtual absl::Status Broadcast(void* data, size_t bytes, int root, const CollectiveLabel& label) = 0;

  // Returns once every rank has called it.
  virtual absl::Status Barrier(const CollectiveLabel& label) = 0;

  // The stream that owns this communicator, as its device's libraries know it (Stream::native); said once,
  // before the first collective of a program. Ignored where calls block.
  virtual void AttachStream(void* native_stream) {}

  // Whether it gets faster by memory that the other ranks can map (Device::AllocateMappable); the same on
  // every rank of the group.
  virtual bool has_windows() const { return false; }

  // Memory that collectives will read and write, for transports that get faster by knowing it. Kept until
  // Detach. With has_windows() the other ranks can map it, it is as long on each, and a collective reads and
  // writes it at the same places on every rank, or not at all; every rank has to call this then. Errors: of
  // the transport, whose calls fail from then on.
  virtual absl::Status RegisterBuffer(void* data, size_t bytes) { return absl::OkStatus(); }

  // For transports whose calls only enqueue, so that they find out what goes wrong later: `in_flight` says
  // where the stream is (Stream::in_flight), `on_failure` is told, once, of an error or a time-out that no
  // call returned. Both are called from another thread and must not
  // block; empty ones end it.
  virtual void Supervise(std::function<InFlight()> in_flight,
                         std::function<void(const absl::Status&)> on_failure) {}

  // The stream, its supervision and the registered memory are about to go. Nothing is in progress, and
  // afterwards neither function is running.
  virtual void Detach() {}

  // Wakes every call in progress, here, with `reason`; later calls fail with it too. Callable from any
  // thread.
  virtual void Abort(absl::Status reason) = 0;

  // Bytes this rank holds for staging beyond the arena; fixed from the start.
  virtual size_t staging_bytes() const = 0;

  // One part alone.
  absl::Status AllGather(const void* src, void* dst, size_t bytes, const CollectiveLabel& label) {
    const GatherPart part{src, dst, bytes};
    return AllGather(absl::MakeConstSpan(&part, 1), label);
  }
  absl::Status ReduceScatter(const void* src, void* dst, size_t count, DType dtype,
                             const CollectiveLabel& label) {
    const ReducePart part{src, dst, count, dtype};
    return ReduceScatter(absl::MakeConstSpan(&part, 1), label);
  }
  absl::Status AllReduce(void* data, size_t count, DType dtype, const CollectiveLabel& label) {
    const ReducePart part{data, data, count, dtype};
    return AllReduce(absl::MakeConstSpan(&part, 1), label);
  }
};

}  // namespace ft
