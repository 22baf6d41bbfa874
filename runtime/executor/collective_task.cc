#include "runtime/executor/collective_task.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/missing_ranks.h"
#include "runtime/collective/tree_sum.h"

namespace ft {
namespace {

class CollectiveTask : public HostTask {
 public:
  CollectiveTask(Communicator& communicator, CollectiveSite site, FailureHandler on_failure)
      : communicator_(communicator), site_(std::move(site)), on_failure_(std::move(on_failure)) {}

  absl::Status Run() final {
    const CollectiveLabel label{.name = site_.title.c_str(), .sequence = sequence_++};
    site_.count->Enter();
    const absl::Status status = Communicate(label);
    if (status.ok()) return site_.count->Leave(), status;
    const absl::Status placed = WithWords(status, absl::StrCat(site_.place, ": ", status.message()));
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

class GatherTask final : public CollectiveTask {
 public:
  GatherTask(std::vector<GatherPart> parts, Communicator& communicator, CollectiveSite site,
             FailureHandler on_failure)
      : CollectiveTask(communicator, std::move(site), std::move(on_failure)), parts_(std::move(parts)) {}

 private:
  absl::Status Communicate(const CollectiveLabel& label) override {
    return communicator_.AllGather(parts_, label);
  }
  const std::vector<GatherPart> parts_;
};

class ReduceTask final : public CollectiveTask {
 public:
  ReduceTask(proto::Opcode opcode, std::vector<ReducePart> parts, Communicator& communicator,
             CollectiveSite site, FailureHandler on_failure)
      : CollectiveTask(communicator, std::move(site), std::move(on_failure)),
        scatters_(opcode == proto::REDUCE_SCATTER),
        parts_(std::move(parts)) {}

 private:
  absl::Status Communicate(const CollectiveLabel& label) override {
    return scatters_ ? communicator_.ReduceScatter(parts_, label) : communicator_.AllReduce(parts_, label);
  }
  const bool scatters_;
  const std::vector<ReducePart> parts_;
};

class AllToAllTask final : public CollectiveTask {
 public:
  AllToAllTask(std::vector<SendPart> sends, std::vector<ReceivePart> receives, uint64_t most_bytes,
               Communicator& communicator, CollectiveSite site, FailureHandler on_failure)
      : CollectiveTask(communicator, std::move(site), std::move(on_failure)),
        sends_(std::move(sends)),
        receives_(std::move(receives)),
        most_bytes_(most_bytes) {}

 private:
  absl::Status Communicate(const CollectiveLabel& label) override {
    return communicator_.AllToAll({sends_, receives_, most_bytes_}, label);
  }
  const std::vector<SendPart> sends_;
  const std::vector<ReceivePart> receives_;
  const uint64_t most_bytes_;
};

std::unique_ptr<HostTask> MakeAllToAll(const proto::Instruction& instruction, const OperandResolver& resolver,
                                       Communicator& communicator, CollectiveSite site,
                                       FailureHandler on_failure) {
  const Moves moves = resolver.Moved(instruction);
  std::vector<SendPart> sends;
  for (const MovedPiece& piece : moves.sends)
    sends.push_back(
        {resolver.Resolve(instruction.in(piece.operand)).as<char>() + piece.begin, piece.bytes, piece.peer});
  std::vector<ReceivePart> receives;
  for (const MovedPiece& piece : moves.receives)
    receives.push_back(
        {resolver.Resolve(instruction.out(piece.operand)).as<char>() + piece.begin, piece.bytes, piece.peer});
  return std::make_unique<AllToAllTask>(std::move(sends), std::move(receives), moves.most_bytes, communicator,
                                        std::move(site), std::move(on_failure));
}

std::vector<GatherPart> GatherParts(const proto::Instruction& instruction, const OperandResolver& resolver) {
  std::vector<GatherPart> parts;
  for (int i = 0; i < instruction.in_size(); ++i) {
    const Tensor slice = resolver.Resolve(instruction.in(i)), whole = resolver.Resolve(instruction.out(i));
    parts.push_back({slice.data, whole.data, slice.elements() * SizeOf(slice.dtype)});
  }
  return parts;
}

std::vector<ReducePart> ReduceParts(const proto::Instruction& instruction, const OperandResolver& resolver) {
  std::vector<ReducePart> parts;
  for (int i = 0; i < instruction.in_size(); ++i) {
    const Tensor in = resolver.Resolve(instruction.in(i));
    const Tensor out = instruction.opcode() == proto::ALL_REDUCE ? in : resolver.Resolve(instruction.out(i));
    parts.push_back(
        {.src = in.data, .dst = out.data, .count = static_cast<size_t>(out.elements()), .dtype = out.dtype});
  }
  return parts;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HostTask>> MakeCollectiveTask(const proto::Instruction& instruction,
                                                             const OperandResolver& resolver,
                                                             Communicator& communicator, CollectiveSite site,
                                                             FailureHandler on_failure) {
  const int ranks = AxisSize(site.mesh, instruction.axis());
  if (communicator.size() != ranks) {
    return absl::InternalError(
        absl::StrCat(site.place, ": its axis has ", ranks, " ranks, its communicator ", communicator.size()));
  }
  if (instruction.opcode() == proto::ALL_GATHER) {
    return std::make_unique<GatherTask>(GatherParts(instruction, resolver), communicator, std::move(site),
                                        std::move(on_failure));
  }
  if (instruction.opcode() == proto::ALL_TO_ALL)
    return MakeAllToAll(instruction, resolver, communicator, std::move(site), std::move(on_failure));
  std::vector<ReducePart> parts = ReduceParts(instruction, resolver);
  if (absl::Status status = CheckReductions(parts, {.name = site.place.c_str(), .sequence = 0}); !status.ok())
    return status;
  return std::make_unique<ReduceTask>(instruction.opcode(), std::move(parts), communicator, std::move(site),
                                      std::move(on_failure));
}

}  // namespace ft
