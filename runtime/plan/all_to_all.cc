#include "runtime/plan/all_to_all.h"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/base/dtype.h"
#include "runtime/plan/size_expr.h"
#include "runtime/plan/unit_parameters.h"

namespace ft {
namespace {

using Operands = google::protobuf::RepeatedPtrField<proto::Operand>;

const proto::SizeExpr& SizeOfBuffer(const proto::Plan& plan, const proto::Operand& operand) {
  return plan.buffers(static_cast<int>(operand.buffer_plus_one()) - 1).size();
}

// Lists the pieces of all ranks in one order and keeps those of one.
class Lister {
 public:
  Lister(const proto::Plan& plan, const Mesh& mesh, int rank, const proto::Instruction& instruction)
      : plan_(plan),
        ranks_(static_cast<uint64_t>(mesh.shard)),
        rank_(rank),
        to_wholes_(SizeOfBuffer(plan, instruction.out(0)).kind() == proto::SizeExpr::SHARE),
        slices_(to_wholes_ ? instruction.in() : instruction.out()),
        wholes_(to_wholes_ ? instruction.out() : instruction.in()),
        parameters_(MovedParameters(instruction)) {
    for (int i = 0; i < slices_.size(); ++i) slice_of_unit_[SizeOfBuffer(plan, slices_[i]).unit()] = i;
  }

  Moves List() && {
    for (int i = 0; i < wholes_.size(); ++i) {
      const proto::SizeExpr& share = SizeOfBuffer(plan_, wholes_[i]);
      const int group = i - static_cast<int>(share.index());
      const int owner = static_cast<int>(share.index() % ranks_);
      AddParameter(plan_.parameters(static_cast<int>(parameters_[static_cast<size_t>(i)])), owner,
                   group + static_cast<int>(share.index() / ranks_));
    }
    for (const auto& [pair, bytes] : sent_) moves_.most_bytes = std::max(moves_.most_bytes, bytes);
    return std::move(moves_);
  }

 private:
  // Its elements, whole in an operand of `owner`, in the slices of some ranks.
  void AddParameter(const proto::Parameter& parameter, int owner, int whole) {
    const int slice = slice_of_unit_.at(parameter.unit());
    const uint64_t element = SizeOf(static_cast<DType>(slices_[slice].dtype()));
    const uint64_t length = SliceElements(plan_.units(static_cast<int>(parameter.unit())).elements(),
                                          plan_.block_elements(), ranks_);
    const uint64_t first = parameter.offset(), last = first + ElementsOf(parameter);
    for (uint64_t begin = first; begin < last;) {
      const uint64_t holder = begin / length, end = std::min(last, (holder + 1) * length);
      const uint64_t bytes = (end - begin) * element;
      const MovedPiece in_slice{owner, slice, (begin - holder * length) * element, bytes};
      const MovedPiece in_whole{static_cast<int>(holder), whole, (begin - first) * element, bytes};
      Add(static_cast<int>(holder), in_slice, owner, in_whole);
      begin = end;
    }
  }

  // `holder` has a slice, `owner` the whole.
  void Add(int holder, const MovedPiece& in_slice, int owner, const MovedPiece& in_whole) {
    if (holder == rank_) (to_wholes_ ? moves_.sends : moves_.receives).push_back(in_slice);
    if (owner == rank_) (to_wholes_ ? moves_.receives : moves_.sends).push_back(in_whole);
    if (holder != owner) sent_[{holder, owner}] += in_slice.bytes;
  }

  const proto::Plan& plan_;
  const uint64_t ranks_;
  const int rank_;
  const bool to_wholes_;
  const Operands& slices_;
  const Operands& wholes_;
  const std::vector<uint32_t> parameters_;
  std::map<uint32_t, int> slice_of_unit_;
  std::map<std::pair<int, int>, uint64_t> sent_;
  Moves moves_;
};

}  // namespace

Moves MovesOf(const proto::Plan& plan, const Mesh& mesh, int rank, const proto::Instruction& instruction) {
  return Lister(plan, mesh, rank, instruction).List();
}

std::vector<uint32_t> MovedParameters(const proto::Instruction& instruction) {
  for (const proto::Attribute& attribute : instruction.attributes())
    if (attribute.name() == kMovedParameters)
      return {attribute.ints().values().begin(), attribute.ints().values().end()};
  return {};
}

const proto::SizeExpr* ShareOf(const proto::Plan& plan, const proto::Instruction& kernel) {
  for (const proto::Operand& out : kernel.out()) {
    if (out.buffer_plus_one() == 0) continue;
    const proto::SizeExpr& size = SizeOfBuffer(plan, out);
    if (size.kind() == proto::SizeExpr::SHARE) return &size;
  }
  return nullptr;
}

bool RunsOn(const proto::Plan& plan, const Mesh& mesh, int rank, const proto::Instruction& kernel) {
  const proto::SizeExpr* share = ShareOf(plan, kernel);
  return share == nullptr || HasShare(*share, static_cast<uint64_t>(mesh.shard), static_cast<uint64_t>(rank));
}

}  // namespace ft
