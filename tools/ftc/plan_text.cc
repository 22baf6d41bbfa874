#include <algorithm>
#include <iterator>
#include <string_view>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "runtime/base/dtype.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/inputs.h"
#include "runtime/plan/plan_file.h"
#include "tools/ftc/commands.h"

namespace ftc {
namespace {

using Out = std::back_insert_iterator<std::string>;

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// The name of a value of an enum, without `prefix`; its number when the plan has one that is not known.
template <typename Enum>
std::string EnumName(const std::string& name, Enum value, size_t prefix = 0) {
  return name.empty() ? fmt::format("{}?", static_cast<int>(value)) : Lower(name.substr(prefix));
}

// The plan may be damaged, so indices are looked at before they are used.
std::string UnitName(const ft::proto::Plan& plan, uint32_t unit) {
  return unit < static_cast<uint32_t>(plan.units_size()) ? plan.units(unit).name()
                                                         : fmt::format("unit {}?", unit);
}

std::string SizeText(const ft::proto::Plan& plan, const ft::proto::SizeExpr& size) {
  switch (size.kind()) {
    case ft::proto::SizeExpr::UNIT_FULL:
      return fmt::format("{} B x whole of {}", size.value(), UnitName(plan, size.unit()));
    case ft::proto::SizeExpr::UNIT_SLICE:
      return fmt::format("{} B x slice of {}", size.value(), UnitName(plan, size.unit()));
    case ft::proto::SizeExpr::SHARE:
      return fmt::format("{} B where a rank has number {} of {}", size.value(), size.index(), size.count());
    default:
      return fmt::format("{} B", size.value());
  }
}

std::string OperandText(const ft::proto::Plan& plan, const ft::proto::Operand& operand) {
  if (operand.buffer_plus_one() == 0) return "none";
  const std::string type = std::string(ft::Name(static_cast<ft::DType>(operand.dtype())));
  const std::string place = fmt::format("{}{}", ft::BufferName(plan, operand.buffer_plus_one() - 1),
                                        operand.offset() == 0 ? "" : fmt::format("[{}]", operand.offset()));
  return operand.whole() ? fmt::format("{} whole {}", place, type)
                         : fmt::format("{} {}[{}]", place, type, fmt::join(operand.shape(), "x"));
}

template <typename Operands>
std::string OperandsText(const ft::proto::Plan& plan, const Operands& operands) {
  std::vector<std::string> texts;
  for (const auto& operand : operands) texts.push_back(OperandText(plan, operand));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string AttributeText(const ft::proto::Attribute& attribute) {
  switch (attribute.value_case()) {
    case ft::proto::Attribute::kI:
      return fmt::format("{} = {}", attribute.name(), attribute.i());
    case ft::proto::Attribute::kF:
      return fmt::format("{} = {}", attribute.name(), attribute.f());
    case ft::proto::Attribute::kS:
      return fmt::format("{} = \"{}\"", attribute.name(), attribute.s());
    case ft::proto::Attribute::kReals:
      return fmt::format("{} = [{}]", attribute.name(), fmt::join(attribute.reals().values(), ", "));
    default:
      return fmt::format("{} = [{}]", attribute.name(), fmt::join(attribute.ints().values(), ", "));
  }
}

void InstructionText(Out out, const ft::proto::Plan& plan, int index,
                     const ft::proto::Instruction& instruction) {
  fmt::format_to(out, "  {:>5} {:<8} {}", index,
                 EnumName(ft::proto::Stream_Name(instruction.stream()), instruction.stream()),
                 ft::InstructionTitle(plan, instruction));
  if (instruction.cluster_plus_one() != 0) fmt::format_to(out, " {}", instruction.cluster_plus_one() - 1);
  if (instruction.after_size() > 0) fmt::format_to(out, " after {}", fmt::join(instruction.after(), ", "));
  if (instruction.axis() != ft::proto::AXIS_NONE)
    fmt::format_to(out, " over {}",
                   EnumName(ft::proto::Axis_Name(instruction.axis()), instruction.axis(), 5));
  if (instruction.in_size() > 0) fmt::format_to(out, " in({})", OperandsText(plan, instruction.in()));
  if (instruction.out_size() > 0) fmt::format_to(out, " out({})", OperandsText(plan, instruction.out()));
  if (instruction.workspace().buffer_plus_one() != 0)
    fmt::format_to(out, " workspace({})", OperandText(plan, instruction.workspace()));
  std::vector<std::string> attributes;
  for (const auto& attribute : instruction.attributes()) attributes.push_back(AttributeText(attribute));
  if (!attributes.empty()) fmt::format_to(out, " {{{}}}", fmt::join(attributes, ", "));
  if (!instruction.phase().empty()) fmt::format_to(out, "  # {}", instruction.phase());
  if (!instruction.layer().empty()) fmt::format_to(out, " {}", instruction.layer());
  fmt::format_to(out, "\n");
}

void BufferText(Out out, const ft::proto::Plan& plan, int index) {
  const ft::proto::Buffer& buffer = plan.buffers(index);
  fmt::format_to(out, "  {:>5} {:<16} {}: {}", index,
                 EnumName(ft::proto::MemoryClass_Name(buffer.class_()), buffer.class_()),
                 ft::BufferName(plan, index), SizeText(plan, buffer.size()));
  if (buffer.has_cuda_bytes()) fmt::format_to(out, " ({} B on CUDA)", buffer.cuda_bytes());
  if (buffer.persistent()) {
    fmt::format_to(out, ", persistent\n");
  } else {
    fmt::format_to(out, ", program {} [{}, {}]\n", buffer.program(), buffer.first(), buffer.last());
  }
}

void InputText(Out out, const ft::proto::Input& input) {
  fmt::format_to(out, "  {}: {}{}, filled by {}", input.name(), ft::IsConstant(input) ? "" : "a batch of ",
                 ft::ExampleText(input), Lower(ft::proto::Input::Filling_Name(input.filling())));
  if (ft::IsOfTokens(input.filling())) fmt::format_to(out, " ({})", ft::FillingText(input.filling()));
  if (input.ids_below() > 0) fmt::format_to(out, ", below {}", input.ids_below());
  if (input.may_be_left_out()) fmt::format_to(out, ", negative ones left out");
  if (input.counted()) fmt::format_to(out, ", counted");
  fmt::format_to(out, "\n");
}

void ProgramText(Out out, const ft::proto::Plan& plan, const ft::proto::Program& program) {
  fmt::format_to(out, "\nprogram {}: {} instructions\n", program.name(), program.instructions_size());
  for (const auto& port : program.inputs())
    fmt::format_to(out, "  input {}: {}\n", port.name(), OperandText(plan, port.operand()));
  for (const auto& port : program.outputs())
    fmt::format_to(out, "  output {}: {}\n", port.name(), OperandText(plan, port.operand()));
  for (int i = 0; i < program.instructions_size(); ++i)
    InstructionText(out, plan, i, program.instructions(i));
}

}  // namespace

std::string PlanText(const ft::proto::Plan& plan, uint64_t hash) {
  std::string text;
  const Out out(text);
  fmt::format_to(
      out,
      "plan {} (version {}, by {}): model {}, strategy {}, batch {}, vocabulary {}, blocks of {} elements\n",
      ft::PlanHashText(hash), plan.version(), plan.producer(), plan.model(), plan.strategy(),
      ft::BatchText(plan), plan.vocab_size(), plan.block_elements());
  for (const auto& setting : plan.settings()) fmt::format_to(out, "  {}\n", AttributeText(setting));
  if (plan.has_target()) {
    const uint32_t ranks = plan.compiled_for().world_size();
    fmt::format_to(out, "  compiled for {} rank{} on {}\n", ranks, ranks == 1 ? "" : "s",
                   plan.target().name());
  }
  if (plan.facts_size() > 0) fmt::format_to(out, "\nfacts of the model\n");
  for (const auto& fact : plan.facts()) fmt::format_to(out, "  {}\n", AttributeText(fact));
  fmt::format_to(out, "\ninputs\n");
  for (const auto& input : plan.inputs()) InputText(out, input);
  fmt::format_to(out, "\nunits\n");
  for (int i = 0; i < plan.units_size(); ++i) {
    fmt::format_to(out, "  {:>5} {}: {} elements\n", i, plan.units(i).name(), plan.units(i).elements());
  }
  fmt::format_to(out, "\nparameters\n");
  for (const auto& p : plan.parameters()) {
    fmt::format_to(out, "  {} [{}] at {} of {}{}\n", p.name(), fmt::join(p.shape(), "x"), p.offset(),
                   UnitName(plan, p.unit()), p.decay() ? ", decays" : "");
  }
  fmt::format_to(out, "\nbuffers\n");
  for (int i = 0; i < plan.buffers_size(); ++i) BufferText(out, plan, i);
  for (const auto& program : plan.programs()) ProgramText(out, plan, program);
  return text;
}

}  // namespace ftc
