// Units, parameters, buffers and the plan's own numbers.
#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/size_expr.h"
#include "runtime/plan/verify_phases.h"

namespace ft {
namespace {

// Far above every model, far below overflow in products with bytes per element and ranks.
constexpr uint64_t kMaxElements = uint64_t{1} << 48;
constexpr uint64_t kMaxBlock = uint64_t{1} << 20;
constexpr uint64_t kMaxBufferBytes = uint64_t{1} << 56;
constexpr uint64_t kMaxBytesPerElement = 64;
constexpr uint64_t kMaxSequence = uint64_t{1} << 31;
constexpr int kMaxPrograms = 64;
constexpr int kMaxParameterRank = 8;

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("invalid plan: ", parts...));
}

absl::Status VerifyNumbers(const proto::Plan& plan) {
  const uint64_t block = plan.block_elements();
  if (block == 0 || block > kMaxBlock) return Invalid("a block of ", block, " elements is not possible");
  if (plan.batch() == 0 || plan.batch() >= kMaxSequence || plan.seq_len() == 0 ||
      plan.seq_len() >= kMaxSequence) {
    return Invalid("a batch of ", plan.batch(), " sequences of ", plan.seq_len(), " tokens is not possible");
  }
  if (plan.vocab_size() == 0 || plan.vocab_size() >= kMaxSequence) {
    return Invalid("a vocabulary of ", plan.vocab_size(), " is not possible");
  }
  if (plan.programs_size() > kMaxPrograms) return Invalid("it has ", plan.programs_size(), " programs");
  return absl::OkStatus();
}

absl::Status VerifyUnits(const proto::Plan& plan) {
  for (const proto::Unit& unit : plan.units()) {
    if (unit.elements() == 0 || unit.elements() > kMaxElements ||
        unit.elements() % plan.block_elements() != 0) {
      return Invalid("unit '", unit.name(), "' has ", unit.elements(),
                     " elements, not a multiple of the block of ", plan.block_elements());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ElementsOf(const proto::Parameter& parameter) {
  uint64_t elements = 1;
  if (parameter.shape_size() > kMaxParameterRank)
    return Invalid("parameter '", parameter.name(), "' has too many dimensions");
  for (uint64_t extent : parameter.shape()) {
    if (extent == 0 || extent > kMaxElements || elements > kMaxElements / extent) {
      return Invalid("parameter '", parameter.name(), "' has a dimension of ", extent);
    }
    elements *= extent;
  }
  return elements;
}

absl::Status VerifyParameters(const proto::Plan& plan) {
  std::vector<uint64_t> ends;
  for (const proto::Parameter& parameter : plan.parameters()) {
    if (parameter.unit() >= static_cast<uint32_t>(plan.units_size())) {
      return Invalid("parameter '", parameter.name(), "' is in unit ", parameter.unit(), " of ",
                     plan.units_size());
    }
    FT_ASSIGN_OR_RETURN(const uint64_t elements, ElementsOf(parameter));
    const uint64_t room = plan.units(parameter.unit()).elements();
    if (parameter.offset() > room || elements > room - parameter.offset()) {
      return Invalid("parameter '", parameter.name(), "' leaves its unit '",
                     plan.units(parameter.unit()).name(), "'");
    }
    if (parameter.offset() % plan.block_elements() != 0) {
      return Invalid("parameter '", parameter.name(), "' begins at element ", parameter.offset(),
                     ", inside a block");
    }
    ends.push_back(parameter.offset() + elements);
  }
  std::vector<int> order(plan.parameters_size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    const proto::Parameter &pa = plan.parameters(a), &pb = plan.parameters(b);
    return std::pair(pa.unit(), pa.offset()) < std::pair(pb.unit(), pb.offset());
  });
  for (size_t k = 1; k < order.size(); ++k) {
    const proto::Parameter &before = plan.parameters(order[k - 1]), &after = plan.parameters(order[k]);
    if (before.unit() == after.unit() && ends[order[k - 1]] > after.offset()) {
      return Invalid("parameters '", before.name(), "' and '", after.name(), "' overlap");
    }
  }
  return absl::OkStatus();
}

absl::Status VerifySize(const proto::Plan& plan, uint32_t index) {
  const proto::SizeExpr& size = plan.buffers(index).size();
  if (!proto::SizeExpr::Kind_IsValid(size.kind()))
    return Invalid("buffer ", BufferName(plan, index), " has a size of an unknown kind");
  const bool constant = size.kind() == proto::SizeExpr::CONSTANT;
  if (size.value() > (constant ? kMaxBufferBytes : kMaxBytesPerElement) || (!constant && size.value() == 0)) {
    return Invalid("buffer ", BufferName(plan, index), " has an impossible size");
  }
  if (!constant && size.unit() >= static_cast<uint32_t>(plan.units_size())) {
    return Invalid("buffer ", BufferName(plan, index), " is sized by unit ", size.unit(), " of ",
                   plan.units_size());
  }
  return absl::OkStatus();
}

absl::Status VerifyBuffers(const proto::Plan& plan) {
  for (int i = 0; i < plan.buffers_size(); ++i) {
    const proto::Buffer& buffer = plan.buffers(i);
    if (!proto::MemoryClass_IsValid(buffer.class_()) || !proto::MemorySpace_IsValid(buffer.space())) {
      return Invalid("buffer ", BufferName(plan, i), " is in an unknown class or space");
    }
    FT_RETURN_IF_ERROR(VerifySize(plan, i));
    if (buffer.persistent()) continue;
    if (buffer.program() >= static_cast<uint32_t>(plan.programs_size())) {
      return Invalid("buffer ", BufferName(plan, i), " belongs to program ", buffer.program(), " of ",
                     plan.programs_size());
    }
    const proto::Program& program = plan.programs(buffer.program());
    if (buffer.first() > buffer.last() ||
        buffer.last() >= static_cast<uint32_t>(program.instructions_size())) {
      return Invalid("buffer ", BufferName(plan, i), " lives from instruction ", buffer.first(), " to ",
                     buffer.last(), " of ", program.name(), ", which has ", program.instructions_size());
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyUnitBuffers(const proto::Plan& plan) {
  if (plan.unit_buffers_size() != 0 && plan.unit_buffers_size() != plan.units_size()) {
    return Invalid("it has ", plan.units_size(), " units and flat buffers for ", plan.unit_buffers_size());
  }
  for (int unit = 0; unit < plan.unit_buffers_size(); ++unit) {
    const auto& buffers = plan.unit_buffers(unit);
    for (uint32_t plus_one : {buffers.parameters_plus_one(), buffers.gradients_plus_one(),
                              buffers.exp_avg_plus_one(), buffers.exp_avg_sq_plus_one()}) {
      if (plus_one == 0) continue;
      if (plus_one > static_cast<uint32_t>(plan.buffers_size()))
        return Invalid("unit ", unit, " names buffer ", plus_one - 1);
      const proto::Buffer& buffer = plan.buffers(plus_one - 1);
      if (!buffer.persistent() || buffer.size().kind() == proto::SizeExpr::CONSTANT ||
          buffer.size().unit() != static_cast<uint32_t>(unit)) {
        return Invalid("buffer ", BufferName(plan, plus_one - 1),
                       " is not a persistent flat buffer of unit '", plan.units(unit).name(), "'");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyTables(const proto::Plan& plan) {
  FT_RETURN_IF_ERROR(VerifyNumbers(plan));
  FT_RETURN_IF_ERROR(VerifyUnits(plan));
  FT_RETURN_IF_ERROR(VerifyParameters(plan));
  FT_RETURN_IF_ERROR(VerifyBuffers(plan));
  return VerifyUnitBuffers(plan);
}

}  // namespace ft
