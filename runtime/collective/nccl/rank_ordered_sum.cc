#include "runtime/collective/nccl/rank_ordered_sum.h"

#include <algorithm>

#include "runtime/base/status_macros.h"
#include "runtime/collective/nccl/transfers.h"
#include "runtime/collective/rounds/bucket.h"

namespace ft::nccl {
namespace {

// Up to this many bytes over all ranks every rank sums everything itself: one exchange instead of two.
constexpr size_t kDirectBytes = size_t{256} << 10;

const std::byte* Source(const ReducePart& part, size_t at) {
  return static_cast<const std::byte*>(part.src) + at;
}
std::byte* Destination(const ReducePart& part, size_t at) { return static_cast<std::byte*>(part.dst) + at; }

// In the order rank + 1, rank + 2, ...: no rank is spoken to by all at once.
template <typename Visit>
void ForEachPeer(int rank, int size, const Visit& visit) {
  for (int step = 1; step < size; ++step) visit((rank + step) % size);
}

size_t FromStart(const ReducePart&) { return 0; }

}  // namespace

RankOrderedSum::RankOrderedSum(const Options& options)
    : options_(options),
      slot_bytes_(options.bytes / static_cast<size_t>(options.size) / kBucketLine * kBucketLine) {}

absl::Status RankOrderedSum::ReduceScatter(absl::Span<const ReducePart> parts, cuda::StreamHandle stream) {
  const size_t bytes = BucketBytes(parts);
  const auto slice = [](const ReducePart& part, int owner) {
    return static_cast<size_t>(owner) * BytesOf(part);
  };
  for (size_t begin = 0; begin < bytes; begin += slot_bytes_) {
    const size_t end = std::min(bytes, begin + slot_bytes_);
    FT_RETURN_IF_ERROR(options_.handle->Group([&](NcclApi& api, CommHandle comm) {
      Transfers transfers(api, comm, stream);
      ForEachPeer(options_.rank, options_.size, [&](int peer) {
        ForEachPiece(parts, begin, end, [&](const ReducePart& part, size_t at, size_t behind, size_t n) {
          transfers.Send(Source(part, slice(part, peer) + at), n, peer);
          transfers.Receive(Slot(peer) + behind, n, peer);
        });
      });
      return transfers.result();
    }));
    FT_RETURN_IF_ERROR(
        Sum(parts, begin, end, [&](const ReducePart& part) { return slice(part, options_.rank); }, stream));
  }
  return absl::OkStatus();
}

absl::Status RankOrderedSum::AllReduce(absl::Span<const ReducePart> parts, cuda::StreamHandle stream) {
  const size_t bytes = BucketBytes(parts), ranks = static_cast<size_t>(options_.size);
  if (bytes <= std::min(kDirectBytes / ranks, slot_bytes_)) return AllReduceDirectly(parts, bytes, stream);
  const size_t chunk = slot_bytes_ * ranks;
  for (size_t begin = 0; begin < bytes; begin += chunk) {
    FT_RETURN_IF_ERROR(AllReduceChunk(parts, begin, std::min(bytes, begin + chunk), stream));
  }
  return absl::OkStatus();
}

absl::Status RankOrderedSum::AllReduceDirectly(absl::Span<const ReducePart> parts, size_t bytes,
                                               cuda::StreamHandle stream) {
  if (bytes == 0) return absl::OkStatus();
  FT_RETURN_IF_ERROR(options_.handle->Group([&](NcclApi& api, CommHandle comm) {
    Transfers transfers(api, comm, stream);
    ForEachPeer(options_.rank, options_.size, [&](int peer) {
      ForEachPiece(parts, 0, bytes, [&](const ReducePart& part, size_t at, size_t behind, size_t n) {
        transfers.Send(Source(part, at), n, peer);
        transfers.Receive(Slot(peer) + behind, n, peer);
      });
    });
    return transfers.result();
  }));
  return Sum(parts, 0, bytes, FromStart, stream);
}

// Reduce-scatter of [begin, end) into size pieces, then all-gather of the sums from destination to
// destination. The last chunk of a bucket may not fill all pieces: the ranks behind its end own a shorter
// one, or none.
absl::Status RankOrderedSum::AllReduceChunk(absl::Span<const ReducePart> parts, size_t begin, size_t end,
                                            cuda::StreamHandle stream) {
  const auto ranks = static_cast<size_t>(options_.size);
  const size_t even = (end - begin + ranks - 1) / ranks;
  const size_t piece = (even + kBucketLine - 1) / kBucketLine * kBucketLine;
  const auto first = [&](int r) { return std::min(end, begin + static_cast<size_t>(r) * piece); };
  const size_t own_begin = first(options_.rank), own_end = first(options_.rank + 1);

  FT_RETURN_IF_ERROR(options_.handle->Group([&](NcclApi& api, CommHandle comm) {
    Transfers transfers(api, comm, stream);
    ForEachPeer(options_.rank, options_.size, [&](int peer) {
      ForEachPiece(parts, first(peer), first(peer + 1),
                   [&](const ReducePart& part, size_t at, size_t, size_t n) {
                     transfers.Send(Source(part, at), n, peer);
                   });
      ForEachPiece(parts, own_begin, own_end, [&](const ReducePart&, size_t, size_t behind, size_t n) {
        transfers.Receive(Slot(peer) + behind, n, peer);
      });
    });
    return transfers.result();
  }));
  FT_RETURN_IF_ERROR(Sum(parts, own_begin, own_end, FromStart, stream));
  return options_.handle->Group([&](NcclApi& api, CommHandle comm) {
    Transfers transfers(api, comm, stream);
    ForEachPeer(options_.rank, options_.size, [&](int peer) {
      ForEachPiece(parts, own_begin, own_end, [&](const ReducePart& part, size_t at, size_t, size_t n) {
        transfers.Send(Destination(part, at), n, peer);
      });
      ForEachPiece(parts, first(peer), first(peer + 1),
                   [&](const ReducePart& part, size_t at, size_t, size_t n) {
                     transfers.Receive(Destination(part, at), n, peer);
                   });
    });
    return transfers.result();
  });
}

template <typename Own>
absl::Status RankOrderedSum::Sum(absl::Span<const ReducePart> parts, size_t begin, size_t end, const Own& own,
                                 cuda::StreamHandle stream) {
  cuda::RankSumArgs args;
  args.slots = options_.staging;
  args.slot_bytes = static_cast<int64_t>(slot_bytes_);
  args.ranks = options_.size;
  args.own_rank = options_.rank;
  absl::Status status;
  const auto flush = [&] {
    if (args.num_pieces > 0 && status.ok())
      status = options_.driver->LaunchStatus(options_.rank_sum(args, stream), "the sum over ranks");
    args.num_pieces = 0;
  };
  ForEachPiece(parts, begin, end, [&](const ReducePart& part, size_t at, size_t behind, size_t n) {
    args.pieces[args.num_pieces++] = {.own = Source(part, own(part) + at),
                                      .out = Destination(part, at),
                                      .offset = static_cast<int64_t>(behind),
                                      .count = static_cast<int64_t>(n / SizeOf(part.dtype)),
                                      .dtype = part.dtype};
    if (args.num_pieces == cuda::kMaxRankSumPieces) flush();
  });
  flush();
  return status;
}

}  // namespace ft::nccl
