#include "runtime/collective/nccl/single_rank.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/first_failure.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/own_parts.h"
#include "runtime/collective/tree_sum.h"

namespace ft::nccl {
namespace {

class SingleRankCommunicator final : public Communicator {
 public:
  explicit SingleRankCommunicator(CudaSide cuda) : cuda_(std::move(cuda)) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  size_t staging_bytes() const override { return 0; }

  absl::Status AllGather(absl::Span<const GatherPart> parts, const CollectiveLabel& label) override {
    FT_RETURN_IF_ERROR(state_.status());
    for (const GatherPart& part : parts) FT_RETURN_IF_ERROR(Copy(part.dst, part.src, part.bytes));
    return absl::OkStatus();
  }

  absl::Status ReduceScatter(absl::Span<const ReducePart> parts, const CollectiveLabel& label) override {
    FT_RETURN_IF_ERROR(state_.status());
    FT_RETURN_IF_ERROR(CheckReductions(parts, label));
    for (const ReducePart& part : parts)
      FT_RETURN_IF_ERROR(Copy(part.dst, part.src, part.count * SizeOf(part.dtype)));
    return absl::OkStatus();
  }

  absl::Status AllReduce(absl::Span<const ReducePart> parts, const CollectiveLabel& label) override {
    return ReduceScatter(parts, label);
  }

  absl::Status AllToAll(const AllToAllParts& parts, const CollectiveLabel& label) override {
    absl::Status status = state_.status();
    ForEachOwn(parts.sends, parts.receives, 0, [&](const SendPart& from, const ReceivePart& to) {
      if (status.ok()) status = Copy(to.dst, from.src, to.bytes);
    });
    return status;
  }

  absl::Status Broadcast(void* data, size_t bytes, int root, const CollectiveLabel& label) override {
    if (root != 0)
      return absl::InvalidArgumentError(absl::StrCat(label.name, ": there is no root rank ", root));
    return state_.status();
  }

  absl::Status Barrier(const CollectiveLabel& label) override { return state_.status(); }

  void AttachStream(void* native_stream) override {
    stream_ = static_cast<cuda::StreamHandle>(native_stream);
  }
  void Detach() override { stream_ = nullptr; }
  void Abort(absl::Status reason) override { state_.Set(std::move(reason)).IgnoreError(); }

 private:
  absl::Status Copy(void* dst, const void* src, size_t bytes) {
    if (dst == src || bytes == 0) return absl::OkStatus();
    return cuda_.driver->CopyAsync(dst, src, bytes, stream_);
  }

  const CudaSide cuda_;
  cuda::StreamHandle stream_ = nullptr;
  FirstFailure state_;
};

}  // namespace

std::unique_ptr<Communicator> CreateSingleRankCommunicator(CudaSide cuda) {
  return std::make_unique<SingleRankCommunicator>(std::move(cuda));
}

}  // namespace ft::nccl
