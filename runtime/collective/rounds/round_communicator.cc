#include "runtime/collective/rounds/round_communicator.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/tree_sum.h"

namespace ft {
namespace {

// Below this many bytes over all ranks every rank sums everything itself: one round instead of two.
constexpr size_t kDirectBytes = size_t{64} << 10;
constexpr size_t kLine = 64;

enum class Operation : uint32_t { kAllGather = 1, kReduceScatter, kAllReduce, kBroadcast, kBarrier };

void Copy(void* dst, const void* src, size_t bytes) {
  if (dst != src && bytes > 0) std::memcpy(dst, src, bytes);
}

class RoundCommunicator : public Communicator {
 public:
  explicit RoundCommunicator(std::unique_ptr<RoundExchange> exchange)
      : exchange_(std::move(exchange)), parts_(static_cast<size_t>(exchange_->size())) {}

  int rank() const override { return exchange_->rank(); }
  int size() const override { return exchange_->size(); }

  absl::Status AllGather(const void* src, void* dst, size_t bytes, const CollectiveLabel& label) override {
    FT_RETURN_IF_ERROR(exchange_->status());
    const RoundHeader header = NextHeader(Operation::kAllGather, 0, bytes, label);
    for (size_t offset = 0; offset < bytes; offset += exchange_->shared_capacity()) {
      const size_t n = std::min(exchange_->shared_capacity(), bytes - offset);
      const std::byte* own = static_cast<const std::byte*>(src) + offset;
      const auto slice = [&](int r) {
        return static_cast<std::byte*>(dst) + static_cast<size_t>(r) * bytes + offset;
      };
      Copy(exchange_->SharedOutbox(), own, n);
      FT_RETURN_IF_ERROR(exchange_->AnnounceShared(header, n));
      Copy(slice(rank()), own, n);
      FT_RETURN_IF_ERROR(AwaitAll([&](int peer) { Copy(slice(peer), exchange_->Inbox(peer), n); }));
      FT_RETURN_IF_ERROR(exchange_->Finish());
    }
    return absl::OkStatus();
  }

  absl::Status ReduceScatter(const void* src, void* dst, size_t count, DType dtype, float scale,
                             const CollectiveLabel& label) override {
    FT_RETURN_IF_ERROR(exchange_->status());
    FT_RETURN_IF_ERROR(CheckReduction(dtype, scale, label));
    const size_t width = SizeOf(dtype);
    const RoundHeader header =
        NextHeader(Operation::kReduceScatter, static_cast<uint32_t>(dtype), count * width, label);
    const size_t piece = exchange_->piece_capacity() / width;
    for (size_t offset = 0; offset < count; offset += piece) {
      const size_t n = std::min(piece, count - offset);
      const auto slice = [&](int r) {
        return static_cast<const std::byte*>(src) + (static_cast<size_t>(r) * count + offset) * width;
      };
      FT_RETURN_IF_ERROR(
          ExchangePieces(header, n * width, [&](int reader) { return Span{slice(reader), n * width}; }));
      SumInboxes(slice(rank()), n, dtype, scale, static_cast<std::byte*>(dst) + offset * width);
      FT_RETURN_IF_ERROR(exchange_->Finish());
    }
    return absl::OkStatus();
  }

  absl::Status AllReduce(void* data, size_t count, DType dtype, float scale,
                         const CollectiveLabel& label) override {
    FT_RETURN_IF_ERROR(exchange_->status());
    FT_RETURN_IF_ERROR(CheckReduction(dtype, scale, label));
    const size_t width = SizeOf(dtype);
    const RoundHeader header =
        NextHeader(Operation::kAllReduce, static_cast<uint32_t>(dtype), count * width, label);
    if (count == 0) return absl::OkStatus();
    const auto ranks = static_cast<size_t>(size());
    if (count * width <= std::min(kDirectBytes / ranks, exchange_->shared_capacity())) {
      return AllReduceDirectly(data, count, dtype, scale, header);
    }
    const size_t chunk = exchange_->piece_capacity() / width * ranks;
    for (size_t offset = 0; offset < count; offset += chunk) {
      std::byte* at = static_cast<std::byte*>(data) + offset * width;
      FT_RETURN_IF_ERROR(AllReduceChunk(at, std::min(chunk, count - offset), dtype, scale, header));
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
  struct Span {
    const std::byte* data;
    size_t bytes;
  };

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

  // Gives each other rank piece(rank), of at most `bytes`, and waits for theirs.
  template <typename PieceOf>
  absl::Status ExchangePieces(const RoundHeader& header, size_t bytes, const PieceOf& piece) {
    for (int reader = 0; reader < size(); ++reader) {
      if (reader == rank()) continue;
      const Span out = piece(reader);
      Copy(exchange_->Outbox(reader), out.data, out.bytes);
    }
    FT_RETURN_IF_ERROR(exchange_->AnnouncePieces(header, bytes));
    return AwaitAll([](int peer) {});
  }

  // dst = scale * tree sum of everyone's inbox and this rank's own part; dst may be `own`.
  void SumInboxes(const std::byte* own, size_t n, DType dtype, float scale, std::byte* dst) {
    for (int writer = 0; writer < size(); ++writer) {
      parts_[static_cast<size_t>(writer)] = writer == rank() ? own : exchange_->Inbox(writer);
    }
    TreeSum(parts_, n, dtype, scale, dst);
  }

  absl::Status AllReduceDirectly(void* data, size_t count, DType dtype, float scale,
                                 const RoundHeader& header) {
    auto* own = static_cast<std::byte*>(data);
    Copy(exchange_->SharedOutbox(), own, count * SizeOf(dtype));
    FT_RETURN_IF_ERROR(exchange_->AnnounceShared(header, count * SizeOf(dtype)));
    FT_RETURN_IF_ERROR(AwaitAll([](int peer) {}));
    SumInboxes(own, count, dtype, scale, own);
    return exchange_->Finish();
  }

  // Reduce-scatter into size() pieces, then all-gather of the sums. The last chunk of a buffer may not fill
  // all pieces: the ranks behind its end own a shorter one, or none.
  absl::Status AllReduceChunk(std::byte* data, size_t count, DType dtype, float scale,
                              const RoundHeader& header) {
    const size_t width = SizeOf(dtype);
    const size_t line = kLine / width;
    const size_t even = (count + static_cast<size_t>(size()) - 1) / static_cast<size_t>(size());
    const size_t piece = (even + line - 1) / line * line;
    const auto first = [&](int r) { return std::min(count, static_cast<size_t>(r) * piece); };
    const auto bytes = [&](int r) { return (first(r + 1) - first(r)) * width; };
    const auto at = [&](int r) { return data + first(r) * width; };

    FT_RETURN_IF_ERROR(
        ExchangePieces(header, piece * width, [&](int reader) { return Span{at(reader), bytes(reader)}; }));
    SumInboxes(at(rank()), bytes(rank()) / width, dtype, scale, at(rank()));
    FT_RETURN_IF_ERROR(exchange_->Finish());

    Copy(exchange_->SharedOutbox(), at(rank()), bytes(rank()));
    FT_RETURN_IF_ERROR(exchange_->AnnounceShared(header, bytes(rank())));
    FT_RETURN_IF_ERROR(AwaitAll([&](int peer) { Copy(at(peer), exchange_->Inbox(peer), bytes(peer)); }));
    return exchange_->Finish();
  }

  const std::unique_ptr<RoundExchange> exchange_;
  uint64_t sequence_ = 0;           // of collectives, as every rank counts them
  std::vector<const void*> parts_;  // by rank; filled anew for each sum
};

}  // namespace

std::unique_ptr<Communicator> CreateRoundCommunicator(std::unique_ptr<RoundExchange> exchange) {
  return std::make_unique<RoundCommunicator>(std::move(exchange));
}

}  // namespace ft
