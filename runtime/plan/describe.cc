#include "runtime/plan/describe.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace ft {

std::string InstructionTitle(const proto::Plan& plan, const proto::Instruction& instruction) {
  if (instruction.opcode() == proto::KERNEL) return instruction.kernel();
  std::string title = proto::Opcode_IsValid(instruction.opcode())
                          ? absl::AsciiStrToLower(proto::Opcode_Name(instruction.opcode()))
                          : absl::StrCat("opcode ", static_cast<int>(instruction.opcode()));
  const uint32_t unit = instruction.unit_plus_one();
  if (unit != 0 && unit <= static_cast<uint32_t>(plan.units_size()))
    absl::StrAppend(&title, " ", plan.units(unit - 1).name());
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
