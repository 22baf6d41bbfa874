#include "runtime/collective/local/local_communicator.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/first_failure.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/own_parts.h"
#include "runtime/collective/tree_sum.h"

namespace ft {
namespace {

class LocalCommunicator : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }

  absl::Status AllGather(absl::Span<const GatherPart> parts, const CollectiveLabel& label) override {
    FT_RETURN_IF_ERROR(state_.status());
    for (const GatherPart& part : parts) {
      if (part.src != part.dst && part.bytes > 0) std::memcpy(part.dst, part.src, part.bytes);
    }
    return absl::OkStatus();
  }

  absl::Status ReduceScatter(absl::Span<const ReducePart> parts, const CollectiveLabel& label) override {
    FT_RETURN_IF_ERROR(state_.status());
    FT_RETURN_IF_ERROR(CheckReductions(parts, label));
    for (const ReducePart& part : parts) {
      if (part.src != part.dst && part.count > 0)
        std::memcpy(part.dst, part.src, part.count * SizeOf(part.dtype));
    }
    return absl::OkStatus();
  }

  absl::Status AllReduce(absl::Span<const ReducePart> parts, const CollectiveLabel& label) override {
    return ReduceScatter(parts, label);
  }

  absl::Status AllToAll(const AllToAllParts& parts, const CollectiveLabel& label) override {
    FT_RETURN_IF_ERROR(state_.status());
    ForEachOwn(parts.sends, parts.receives, 0, [](const SendPart& from, const ReceivePart& to) {
      if (to.bytes > 0) std::memcpy(to.dst, from.src, to.bytes);
    });
    return absl::OkStatus();
  }

  absl::Status Broadcast(void* data, size_t bytes, int root, const CollectiveLabel& label) override {
    if (root != 0)
      return absl::InvalidArgumentError(absl::StrCat(label.name, ": there is no root rank ", root));
    return state_.status();
  }

  absl::Status Barrier(const CollectiveLabel& label) override { return state_.status(); }

  void Abort(absl::Status reason) override { state_.Set(std::move(reason)).IgnoreError(); }

  size_t staging_bytes() const override { return 0; }

 private:
  FirstFailure state_;
};

}  // namespace

std::unique_ptr<Communicator> CreateLocalCommunicator() { return std::make_unique<LocalCommunicator>(); }

}  // namespace ft
