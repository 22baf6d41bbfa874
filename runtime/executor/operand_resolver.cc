#include "runtime/executor/operand_resolver.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/plan/verify_plan.h"

namespace ft {
namespace {

// " f32[4,64]"
void AddShapes(const google::protobuf::RepeatedPtrField<proto::Operand>& operands,
               const OperandResolver& resolver, std::string* text) {
  for (const proto::Operand& operand : operands) {
    if (operand.buffer_plus_one() == 0) continue;
    const Tensor tensor = resolver.Resolve(operand);
    absl::StrAppend(text, text->empty() ? "" : " ", std::string(Name(tensor.dtype)), "[",
                    absl::StrJoin(tensor.dims.begin(), tensor.dims.begin() + tensor.rank, ","), "]");
  }
}

}  // namespace

static_assert(kMaxOperandRank == kMaxRank, "what VerifyPlan lets through fits a Tensor");

char* OperandResolver::Address(uint32_t buffer) const {
  return (plan_.buffers(buffer).space() == proto::HOST ? host_ : device_) + bound_.offsets[buffer];
}

Tensor OperandResolver::Resolve(const proto::Operand& operand) const {
  Tensor tensor;
  if (operand.buffer_plus_one() == 0) return tensor;
  const uint32_t buffer = operand.buffer_plus_one() - 1;
  tensor.data = Address(buffer) + operand.offset();
  tensor.dtype = static_cast<DType>(operand.dtype());
  const proto::SizeExpr& size = plan_.buffers(buffer).size();
  if (IsFlat(plan_, operand)) tensor.parameters = parameters_[size.unit()];
  if (operand.own_slice()) {
    tensor.data = Address(buffer) + SliceBegin(size.unit()) * SizeOf(tensor.dtype);
    tensor.rank = 1;
    tensor.dims[0] = static_cast<int64_t>(bound_.slices[size.unit()]);
    tensor.flat_begin = static_cast<int64_t>(SliceBegin(size.unit()));
    return tensor;
  }
  if (!operand.whole()) {
    tensor.rank = operand.shape_size();
    for (int i = 0; i < tensor.rank; ++i) tensor.dims[i] = static_cast<int64_t>(operand.shape(i));
    return tensor;
  }
  tensor.rank = 1;
  tensor.dims[0] = static_cast<int64_t>(bound_.sizes[buffer] / SizeOf(tensor.dtype));
  if (size.kind() == proto::SizeExpr::UNIT_SLICE)
    tensor.flat_begin = static_cast<int64_t>(SliceBegin(size.unit()));
  return tensor;
}

KernelOperands OperandResolver::Operands(const proto::Instruction& instruction) const {
  KernelOperands operands;
  for (const proto::Operand& in : instruction.in()) operands.in.push_back(Resolve(in));
  for (const proto::Operand& out : instruction.out()) operands.out.push_back(Resolve(out));
  operands.workspace = Resolve(instruction.workspace());
  return operands;
}

std::string ShapesText(const proto::Instruction& instruction, const OperandResolver& resolver) {
  std::string text;
  AddShapes(instruction.in(), resolver, &text);
  if (instruction.out().empty()) return text;
  absl::StrAppend(&text, text.empty() ? "->" : " ->");
  AddShapes(instruction.out(), resolver, &text);
  return text;
}

KernelAttributes AttributesOf(const proto::Instruction& instruction) {
  KernelAttributes attributes;
  for (const proto::Attribute& attribute : instruction.attributes()) {
    switch (attribute.value_case()) {
      case proto::Attribute::kI:
        attributes.Add(attribute.name(), attribute.i());
        break;
      case proto::Attribute::kF:
        attributes.Add(attribute.name(), attribute.f());
        break;
      case proto::Attribute::kS:
        attributes.Add(attribute.name(), attribute.s());
        break;
      case proto::Attribute::kInts:
        attributes.Add(attribute.name(), std::vector<int64_t>(attribute.ints().values().begin(),
                                                              attribute.ints().values().end()));
        break;
      case proto::Attribute::kReals:
        attributes.Add(attribute.name(), std::vector<double>(attribute.reals().values().begin(),
                                                             attribute.reals().values().end()));
        break;
      case proto::Attribute::VALUE_NOT_SET:
        break;
    }
  }
  return attributes;
}

}  // namespace ft
