#include "runtime/plan/float8_products.h"

#include <string_view>

#include "runtime/plan/attributes.h"

namespace ft {
namespace {

constexpr std::string_view kTrainStep = "train_step";

const proto::Program* MainProgram(const proto::Plan& plan) {
  for (const proto::Program& program : plan.programs())
    if (program.name() == kTrainStep) return &program;
  return plan.programs().empty() ? nullptr : &plan.programs(0);
}

}  // namespace

Float8Products Float8ProductsOf(const proto::Plan& plan) {
  Float8Products result;
  const proto::Program* program = MainProgram(plan);
  if (program == nullptr) return result;
  for (const proto::Instruction& instruction : program->instructions()) {
    if (instruction.opcode() != proto::KERNEL || !instruction.kernel().starts_with("matmul")) continue;
    ++result.products;
    const proto::Attribute* scaling = FindAttribute(instruction.attributes(), "scaling");
    if (scaling == nullptr) continue;
    ++result.rounded;
    result.recipe = scaling->s();
  }
  return result;
}

}  // namespace ft
