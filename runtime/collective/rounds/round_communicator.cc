#include "runtime/collective/rounds/round_communicator.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/own_parts.h"
#include "runtime/collective/rounds/bucket.h"
#include "runtime/collective/tree_sum.h"

namespace ft {
namespace {

// Below this many bytes over all ranks every rank sums everything itself: one round instead of two.
constexpr size_t kDirectBytes = size_t{64} << 10;

enum class Operation : uint32_t {
  kAllGather = 1,
  kReduceScatter,
  kAllReduce,
  kBroadcast,
  kBarrier,
  kAllToAll
};

template <typename Part>
const std::byte* Source(const Part& part, size_t at) {
  return static_cast<const std::byte*>(part.src) + at;
}

std::byte* Slice(const GatherPart& part, int rank, size_t at) {
  return static_cast<std::byte*>(part.dst) + static_cast<size_t>(rank) * part.bytes + at;
}

void Copy(void* dst, const void* src, size_t bytes) {
  if (dst != src && bytes > 0) std::memcpy(dst, src, bytes);
}

class RoundCommunicator : public Communicator {
 public:
  explicit RoundCommunicator(std::unique_ptr<RoundExchange> exchange)
      : exchange_(std::move(exchange)), summands_(static_cast<size_t>(exchange_->size())) {}

  int rank() const override { return exchange_->rank(); }
  int size() const override { return exchange_->size(); }

  absl::Status AllGather(absl::Span<const GatherPart> parts, const CollectiveLabel& label) override {
    FT_RETURN_IF_ERROR(exchange_->status());
    const size_t bytes = BucketBytes(parts);
    const RoundHeader header = NextHeader(Operation::kAllGather, Shape(parts), bytes, label);
    for (size_t begin = 0; begin < bytes; begin += exchange_->shared_capacity()) {
      const size_t end = std::min(bytes, begin + exchange_->shared_capacity());
      ForEachPiece(parts, begin, end, [&](const GatherPart& part, size_t at, size_t behind, size_t n) {
        Copy(exchange_->SharedOutbox() + behind, Source(part, at), n);
      });
      FT_RETURN_IF_ERROR(exchange_->AnnounceShared(header, end - begin));
      ForEachPiece(parts, begin, end, [&](const GatherPart& part, size_t at, size_t, size_t n) {
        Copy(Slice(part, rank(), at), Source(part, at), n);
      });
      FT_RETURN_IF_ERROR(AwaitAll([&](int peer) {
        ForEachPiece(parts, begin, end, [&](const GatherPart& part, size_t at, size_t behind, size_t n) {
          Copy(Slice(part, peer, at), exchange_->Inbox(peer) + behind, n);
        });
      }));
      FT_RETURN_IF_ERROR(exchange_->Finish());
    }
    return absl::OkStatus();
  }

  absl::Status ReduceScatter(absl::Span<const ReducePart> parts, const CollectiveLabel& label) override {
    FT_RETURN_IF_ERROR(exchange_->status());
    FT_RETURN_IF_ERROR(CheckReductions(parts, label));
    const size_t bytes = BucketBytes(parts);
    const RoundHeader header = NextHeader(Operation::kReduceScatter, Shape(parts), bytes, label);
    // Where the slice of `owner` begins in a part's source.
    const auto slice = [](const ReducePart& part, int owner) {
      return static_cast<size_t>(owner) * BytesOf(part);
    };
    for (size_t begin = 0; begin < bytes; begin += exchange_->piece_capacity()) {
      const size_t end = std::min(bytes, begin + exchange_->piece_capacity());
      FT_RETURN_IF_ERROR(ExchangePieces(header, end - begin, [&](int reader, std::byte* out) {
        ForEachPiece(parts, begin, end, [&](const ReducePart& part, size_t at, size_t behind, size_t n) {
          Copy(out + behind, Source(part, slice(part, reader) + at), n);
        });
      }));
      SumPieces(parts, begin, end, [&](const ReducePart& part) { return slice(part, rank()); });
      FT_RETURN_IF_ERROR(exchange_->Finish());
    }
    return absl::OkStatus();
  }

  absl::Status AllReduce(absl::Span<const ReducePart> parts, const CollectiveLabel& label) override {
    FT_RETURN_IF_ERROR(exchange_->status());
    FT_RETURN_IF_ERROR(CheckReductions(parts, label));
    const size_t bytes = BucketBytes(parts);
    const RoundHeader header = NextHeader(Operation::kAllReduce, Shape(parts), bytes, label);
    if (bytes == 0) return absl::OkStatus();
    const auto ranks = static_cast<size_t>(size());
    if (bytes <= std::min(kDirectBytes / ranks, exchange_->shared_capacity())) {
      return AllReduceDirectly(parts, bytes, header);
    }
    const size_t chunk = exchange_->piece_capacity() * ranks;
    for (size_t begin = 0; begin < bytes; begin += chunk) {
      FT_RETURN_IF_ERROR(AllReduceChunk(parts, begin, std::min(bytes, begin + chunk), header));
    }
    return absl::OkStatus();
  }

  absl::Status AllToAll(const AllToAllParts& parts, const CollectiveLabel& label) override {
    FT_RETURN_IF_ERROR(exchange_->status());
    const RoundHeader header = NextHeader(Operation::kAllToAll, 0, parts.most_bytes, label);
    ForEachOwn(parts.sends, parts.receives, rank(),
               [](const SendPart& from, const ReceivePart& to) { Copy(to.dst, from.src, to.bytes); });
    for (size_t begin = 0; begin < parts.most_bytes; begin += exchange_->piece_capacity()) {
      const size_t end = std::min(parts.most_bytes, begin + exchange_->piece_capacity());
      FT_RETURN_IF_ERROR(ExchangePieces(header, end - begin, [&](int reader, std::byte* out) {
        ForEachPieceOf(parts.sends, reader, begin, end,
                       [&](const SendPart& part, size_t at, size_t behind, size_t n) {
                         Copy(out + behind, Source(part, at), n);
                       });
      }));
      for (int writer = 0; writer < size(); ++writer) {
        if (writer == rank()) continue;
        ForEachPieceOf(parts.receives, writer, begin, end,
                       [&](const ReceivePart& part, size_t at, size_t behind, size_t n) {
                         Copy(static_cast<std::byte*>(part.dst) + at, exchange_->Inbox(writer) + behind, n);
                       });
      }
      FT_RETURN_IF_ERROR(exchange_->Finish());
    }
    return absl::OkStatus();
  }

  absl::Status Broadcast(void* data, size_t bytes, int root, const CollectiveLabel& label) override {
    FT_RETURN_IF_ERROR(exchange_->status());
    if (root < 0 || root >= size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(label.name, ": there is no root rank ", root, " among ", size()));
    }
    const RoundHeader header = NextHeader(Operation::kBroadcast, static_cast<uint32_t>(root), bytes, label);
    for (size_t offset = 0; offset < bytes; offset += exchange_->shared_capacity()) {
      std::byte* at = static_cast<std::byte*>(data) + offset;
      const size_t n = std::min(exchange_->shared_capacity(), bytes - offset);
      if (rank() == root) Copy(exchange_->SharedOutbox(), at, n);
      FT_RETURN_IF_ERROR(exchange_->AnnounceShared(header, rank() == root ? n : 0));
      FT_RETURN_IF_ERROR(AwaitAll([](int peer) {}));
      if (rank() != root) Copy(at, exchange_->Inbox(root), n);
      FT_RETURN_IF_ERROR(exchange_->Finish());
    }
    return absl::OkStatus();
  }

  absl::Status Barrier(const CollectiveLabel& label) override {
    FT_RETURN_IF_ERROR(exchange_->status());
    FT_RETURN_IF_ERROR(exchange_->AnnounceShared(NextHeader(Operation::kBarrier, 0, 0, label), 0));
    FT_RETURN_IF_ERROR(AwaitAll([](int peer) {}));
    return exchange_->Finish();
  }

  void Abort(absl::Status reason) override { exchange_->Abort(std::move(reason)); }

  size_t staging_bytes() const override { return exchange_->staging_bytes(); }

 private:
  // Tells buckets apart that happen to have the same length: a hash of the parts' sizes and types.
  template <typename Part>
  static uint32_t Shape(absl::Span<const Part> parts) {
    uint64_t hash = 14695981039346656037u;
    for (const Part& part : parts) {
      uint64_t word = BytesOf(part) * 8;
      if constexpr (std::is_same_v<Part, ReducePart>) word += static_cast<uint64_t>(part.dtype);
      hash = (hash ^ word) * 1099511628211u;
    }
    return static_cast<uint32_t>(hash ^ hash >> 32);
  }

  RoundHeader NextHeader(Operation operation, uint32_t argument, uint64_t bytes,
                         const CollectiveLabel& label) {
    RoundHeader header;
    header.operation = static_cast<uint32_t>(operation);
    header.argument = argument;
    header.bytes = bytes;
    header.sequence = ++sequence_;
    std::strncpy(header.name, label.name, sizeof(header.name) - 1);
    return header;
  }

  // Calls `arrived` for each peer as it comes, in the order rank + 1, rank + 2, ...: no rank is asked by all
  // at once.
  template <typename Arrived>
  absl::Status AwaitAll(const Arrived& arrived) {
    for (int step = 1; step < size(); ++step) {
      const int peer = (rank() + step) % size();
      FT_RETURN_IF_ERROR(exchange_->Await(peer));
      arrived(peer);
    }
    return absl::OkStatus();
  }

  // Calls visit(part, offset in the part, offset behind `begin`, bytes) for what lies in [begin, end) of the
  // parts of one peer, laid one behind the other.
  template <typename Part, typename Visit>
  static void ForEachPieceOf(absl::Span<const Part> parts, int peer, size_t begin, size_t end,
                             const Visit& visit) {
    size_t part_begin = 0;
    for (const Part& part : parts) {
      if (part.peer != peer) continue;
      const size_t from = std::max(begin, part_begin), to = std::min(end, part_begin + part.bytes);
      if (from < to) visit(part, from - part_begin, from - begin, to - from);
      part_begin += part.bytes;
    }
  }

  // Gives each other rank what fill(rank, where to) leaves there, `bytes` at most, and waits for theirs.
  template <typename Fill>
  absl::Status ExchangePieces(const RoundHeader& header, size_t bytes, const Fill& fill) {
    for (int reader = 0; reader < size(); ++reader) {
      if (reader != rank()) fill(reader, exchange_->Outbox(reader));
    }
    FT_RETURN_IF_ERROR(exchange_->AnnouncePieces(header, bytes));
    return AwaitAll([](int peer) {});
  }

  // [begin, end) of the destinations becomes the sum of everyone's inbox and this rank's own source, which
  // begins own(part) bytes into it.
  template <typename Own>
  void SumPieces(absl::Span<const ReducePart> parts, size_t begin, size_t end, const Own& own) {
    ForEachPiece(parts, begin, end, [&](const ReducePart& part, size_t at, size_t behind, size_t n) {
      for (int writer = 0; writer < size(); ++writer) {
        summands_[static_cast<size_t>(writer)] =
            writer == rank() ? Source(part, own(part) + at) : exchange_->Inbox(writer) + behind;
      }
      TreeSum(summands_, n / SizeOf(part.dtype), part.dtype, static_cast<std::byte*>(part.dst) + at);
    });
  }

  static size_t FromStart(const ReducePart&) { return 0; }

  absl::Status AllReduceDirectly(absl::Span<const ReducePart> parts, size_t bytes,
                                 const RoundHeader& header) {
    ForEachPiece(parts, 0, bytes, [&](const ReducePart& part, size_t at, size_t behind, size_t n) {
      Copy(exchange_->SharedOutbox() + behind, Source(part, at), n);
    });
    FT_RETURN_IF_ERROR(exchange_->AnnounceShared(header, bytes));
    FT_RETURN_IF_ERROR(AwaitAll([](int peer) {}));
    SumPieces(parts, 0, bytes, FromStart);
    return exchange_->Finish();
  }

  // Reduce-scatter of [begin, end) into size() pieces, then all-gather of the sums. The last chunk of a
  // bucket may not fill all pieces: the ranks behind its end own a shorter one, or none.
  absl::Status AllReduceChunk(absl::Span<const ReducePart> parts, size_t begin, size_t end,
                              const RoundHeader& header) {
    const auto ranks = static_cast<size_t>(size());
    const size_t even = (end - begin + ranks - 1) / ranks;
    const size_t piece = (even + kBucketLine - 1) / kBucketLine * kBucketLine;
    const auto first = [&](int r) { return std::min(end, begin + static_cast<size_t>(r) * piece); };

    FT_RETURN_IF_ERROR(ExchangePieces(header, piece, [&](int reader, std::byte* out) {
      ForEachPiece(parts, first(reader), first(reader + 1),
                   [&](const ReducePart& part, size_t at, size_t behind, size_t n) {
                     Copy(out + behind, Source(part, at), n);
                   });
    }));
    SumPieces(parts, first(rank()), first(rank() + 1), FromStart);
    FT_RETURN_IF_ERROR(exchange_->Finish());

    const size_t own = first(rank() + 1) - first(rank());
    ForEachPiece(parts, first(rank()), first(rank() + 1),
                 [&](const ReducePart& part, size_t at, size_t behind, size_t n) {
                   Copy(exchange_->SharedOutbox() + behind, static_cast<std::byte*>(part.dst) + at, n);
                 });
    FT_RETURN_IF_ERROR(exchange_->AnnounceShared(header, own));
    FT_RETURN_IF_ERROR(AwaitAll([&](int peer) {
      ForEachPiece(parts, first(peer), first(peer + 1),
                   [&](const ReducePart& part, size_t at, size_t behind, size_t n) {
                     Copy(static_cast<std::byte*>(part.dst) + at, exchange_->Inbox(peer) + behind, n);
                   });
    }));
    return exchange_->Finish();
  }

  const std::unique_ptr<RoundExchange> exchange_;
  uint64_t sequence_ = 0;              // of collectives, as every rank counts them
  std::vector<const void*> summands_;  // by rank; filled anew for each sum
};

}  // namespace

std::unique_ptr<Communicator> CreateRoundCommunicator(std::unique_ptr<RoundExchange> exchange) {
  return std::make_unique<RoundCommunicator>(std::move(exchange));
}

}  // namespace ft
