// Reductions of the deterministic mode: ranks exchange their summands, and each sums its share in the order
// of ranks (tree_sum.h). Chunk by chunk, as the staging memory holds; all of it on the stream.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/backends/cuda/driver.h"
#include "runtime/collective/communicator.h"
#include "runtime/collective/nccl/nccl_handle.h"
#include "runtime/kernels/rank_sum/cuda_device.h"

namespace ft::nccl {

class RankOrderedSum {
 public:
  // `staging` is `bytes` of device memory, aligned to 64. What is pointed at must outlive this.
  struct Options {
    NcclHandle* handle = nullptr;
    cuda::Driver* driver = nullptr;
    cuda::RankSumLauncher rank_sum = nullptr;
    int rank = 0;
    int size = 2;
    std::byte* staging = nullptr;
    size_t bytes = 0;
  };
  explicit RankOrderedSum(const Options& options);

  // Communicator's, enqueued.
  absl::Status ReduceScatter(absl::Span<const ReducePart> parts, cuda::StreamHandle stream);
  absl::Status AllReduce(absl::Span<const ReducePart> parts, cuda::StreamHandle stream);

 private:
  absl::Status AllReduceDirectly(absl::Span<const ReducePart> parts, size_t bytes, cuda::StreamHandle stream);
  absl::Status AllReduceChunk(absl::Span<const ReducePart> parts, size_t begin, size_t end,
                              cuda::StreamHandle stream);
  // [begin, end) of the run of bytes that the destinations make (rounds/bucket.h) becomes the sum of what the
  // others left in the staging memory and of the own source, own(part) bytes into it.
  template <typename Own>
  absl::Status Sum(absl::Span<const ReducePart> parts, size_t begin, size_t end, const Own& own,
                   cuda::StreamHandle stream);

  std::byte* Slot(int rank) const { return options_.staging + static_cast<size_t>(rank) * slot_bytes_; }

  const Options options_;
  const size_t slot_bytes_;
};

}  // namespace ft::nccl
