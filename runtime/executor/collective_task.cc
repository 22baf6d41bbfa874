#include "runtime/executor/collective_task.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace ft {
namespace {

class CollectiveTask : public HostTask {
 public:
  CollectiveTask(Communicator& communicator, CollectiveSite site, FailureHandler on_failure)
      : communicator_(communicator), site_(std::move(site)), on_failure_(std::move(on_failure)) {}

  absl::Status Run() final {
    const CollectiveLabel label{.name = site_.title.c_str(), .sequence = sequence_++};
    const absl::Status status = Communicate(label);
    if (status.ok()) return status;
    const absl::Status placed(status.code(), absl::StrCat(site_.place, ": ", status.message()));
    on_failure_(placed);
    return placed;
  }

 protected:
  virtual absl::Status Communicate(const CollectiveLabel& label) = 0;

  Communicator& communicator_;
  const CollectiveSite site_;

 private:
  const FailureHandler on_failure_;
  uint64_t sequence_ = 0;
};

class AllGatherTask final : public CollectiveTask {
 public:
  AllGatherTask(const Tensor& slice, const Tensor& whole, Communicator& communicator, CollectiveSite site,
                FailureHandler on_failure)
      : CollectiveTask(communicator, std::move(site), std::move(on_failure)), slice_(slice), whole_(whole) {}

 private:
  absl::Status Communicate(const CollectiveLabel& label) override {
    return communicator_.AllGather(slice_.data, whole_.data, slice_.elements() * SizeOf(slice_.dtype), label);
  }
  const Tensor slice_, whole_;
};

class ReduceScatterTask final : public CollectiveTask {
 public:
  ReduceScatterTask(const Tensor& whole, const Tensor& slice, Communicator& communicator, CollectiveSite site,
                    FailureHandler on_failure)
      : CollectiveTask(communicator, std::move(site), std::move(on_failure)), whole_(whole), slice_(slice) {}

 private:
  absl::Status Communicate(const CollectiveLabel& label) override {
    return communicator_.ReduceScatter(whole_.data, slice_.data, slice_.elements(), slice_.dtype,
                                       1.0f / site_.axis_size, label);
  }
  const Tensor whole_, slice_;
};

class AllReduceTask final : public CollectiveTask {
 public:
  AllReduceTask(const Tensor& data, Communicator& communicator, CollectiveSite site,
                FailureHandler on_failure)
      : CollectiveTask(communicator, std::move(site), std::move(on_failure)), data_(data) {}

 private:
  absl::Status Communicate(const CollectiveLabel& label) override {
    const float scale = data_.dtype == DType::kI64 ? 1.0f : 1.0f / site_.axis_size;
    return communicator_.AllReduce(data_.data, data_.elements(), data_.dtype, scale, label);
  }
  const Tensor data_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HostTask>> MakeCollectiveTask(const proto::Instruction& instruction,
                                                             const OperandResolver& resolver,
                                                             Communicator& communicator, CollectiveSite site,
                                                             FailureHandler on_failure) {
  if (communicator.size() != site.axis_size) {
    return absl::UnimplementedError(
        absl::StrCat(site.place, ": its axis has ", site.axis_size, " of the ", communicator.size(),
                     " ranks; collectives over a part of the ranks are not there yet"));
  }
  const Tensor in = resolver.Resolve(instruction.in(0));
  switch (instruction.opcode()) {
    case proto::ALL_GATHER:
      return std::make_unique<AllGatherTask>(in, resolver.Resolve(instruction.out(0)), communicator,
                                             std::move(site), std::move(on_failure));
    case proto::REDUCE_SCATTER:
      return std::make_unique<ReduceScatterTask>(in, resolver.Resolve(instruction.out(0)), communicator,
                                                 std::move(site), std::move(on_failure));
    case proto::ALL_REDUCE:
      return std::make_unique<AllReduceTask>(in, communicator, std::move(site), std::move(on_failure));
    default:
      return absl::InternalError(absl::StrCat(site.place, ": not a collective"));
  }
}

}  // namespace ft
