// Scaling of results on the device.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/collective/communicator.h"
#include "runtime/collective/nccl/device_side.h"

namespace ft::nccl {

// dst = scale * source(part) for the parts for which source gives an address, rounded once; enqueued.
template <typename Source>
absl::Status Scale(const CudaSide& cuda, absl::Span<const ReducePart> parts, cuda::StreamHandle stream,
                   const Source& source) {
  cuda::RankSumArgs args;  // the sum over one rank
  absl::Status status;
  const auto flush = [&] {
    if (args.num_pieces > 0 && status.ok())
      status = cuda.driver->LaunchStatus(cuda.rank_sum(args, stream), "the scaling of a sum over ranks");
    args.num_pieces = 0;
  };
  for (const ReducePart& part : parts) {
    const std::optional<const void*> from = source(part);
    if (!from.has_value() || part.count == 0) continue;
    args.pieces[args.num_pieces++] = {.own = *from,
                                      .out = part.dst,
                                      .count = static_cast<int64_t>(part.count),
                                      .scale = part.scale,
                                      .dtype = part.dtype};
    if (args.num_pieces == cuda::kMaxRankSumPieces) flush();
  }
  flush();
  return status;
}

}  // namespace ft::nccl
