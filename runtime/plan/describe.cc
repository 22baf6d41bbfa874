#include "runtime/plan/describe.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace ft {

namespace {

// The buffer on the device's side; its name without marks.
std::string CopiedBuffer(const proto::Plan& plan, const proto::Instruction& instruction) {
  const bool in = instruction.stream() == proto::H2D;
  const auto& operands = in ? instruction.out() : instruction.in();
  const uint32_t plus_one = operands.empty() ? 0 : operands[0].buffer_plus_one();
  if (plus_one == 0 || plus_one > static_cast<uint32_t>(plan.buffers_size())) return "?";
  return plan.buffers(plus_one - 1).name();
}

std::string TitleOfFirst(const proto::Plan& plan, const proto::Instruction& instruction) {
  if (instruction.opcode() == proto::COPY) {
    return absl::StrCat(instruction.stream() == proto::H2D ? "copy_in " : "copy_out ",
                        CopiedBuffer(plan, instruction));
  }
  std::string title = proto::Opcode_IsValid(instruction.opcode())
                          ? absl::AsciiStrToLower(proto::Opcode_Name(instruction.opcode()))
                          : absl::StrCat("opcode ", static_cast<int>(instruction.opcode()));
  const uint32_t unit = instruction.unit_plus_one();
  if (unit != 0 && unit <= static_cast<uint32_t>(plan.units_size()))
    absl::StrAppend(&title, " ", plan.units(unit - 1).name());
  return title;
}

}  // namespace

std::string InstructionTitle(const proto::Plan& plan, const proto::Instruction& instruction) {
  if (instruction.opcode() == proto::KERNEL) return instruction.kernel();
  std::string title = TitleOfFirst(plan, instruction);
  if (instruction.in_size() > 1) absl::StrAppend(&title, " +", instruction.in_size() - 1);
  return title;
}

std::string InstructionPlace(const proto::Plan& plan, int program, int instruction) {
  const proto::Instruction& what = plan.programs(program).instructions(instruction);
  std::string place = absl::StrCat(plan.programs(program).name(), ", instruction ", instruction, " (",
                                   InstructionTitle(plan, what));
  if (!what.layer().empty()) absl::StrAppend(&place, ", layer ", what.layer());
  return place + ")";
}

std::string BufferName(const proto::Plan& plan, uint32_t buffer) {
  if (buffer >= static_cast<uint32_t>(plan.buffers_size())) return absl::StrCat("'buffer ", buffer, "?'");
  const std::string& name = plan.buffers(buffer).name();
  return name.empty() ? absl::StrCat("'buffer ", buffer, "'") : absl::StrCat("'", name, "'");
}

}  // namespace ft
