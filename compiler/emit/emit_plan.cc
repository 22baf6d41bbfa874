#include "compiler/emit/emit_plan.h"

#include "compiler/emit/numbering.h"
#include "dialects/ft/facts.h"
#include "runtime/plan/plan_facts.h"

namespace ft::compiler {

using namespace mlir;
using mlir::ftx::InputOp;
using mlir::ftx::ProgramOp;

namespace {

std::string textOf(ModuleOp module, StringRef name) {
  auto attr = module->getAttrOfType<StringAttr>(name);
  return attr ? attr.getValue().str() : std::string();
}

bool flagOf(ModuleOp module, StringRef name) {
  auto attr = module->getAttrOfType<BoolAttr>(name);
  return attr && attr.getValue();
}

/// Batch and sequence length are the shape of the tokens.
LogicalResult emitShape(ModuleOp module, proto::Plan &plan) {
  RankedTensorType tokens;
  module.walk([&](InputOp input) {
    if (input.getName() == "tokens")
      tokens = cast<RankedTensorType>(input.getType());
  });
  auto vocabulary = module->getAttrOfType<IntegerAttr>(mlir::ft::kVocabSizeAttr);
  if (!tokens || tokens.getRank() != 2)
    return module.emitError("no program takes tokens of shape [batch, sequence]");
  if (!vocabulary)
    return module.emitError() << "the module has no attribute '" << mlir::ft::kVocabSizeAttr << "'";
  plan.set_batch(tokens.getDimSize(0));
  plan.set_seq_len(tokens.getDimSize(1));
  plan.set_vocab_size(vocabulary.getInt());
  return success();
}

} // namespace

LogicalResult emitPlan(ModuleOp module, const PlanInfo &info, proto::Plan &plan) {
  plan.set_producer(info.producer);
  plan.set_model(textOf(module, mlir::ft::kModelAttr));
  plan.set_strategy(textOf(module, "ft.strategy"));
  plan.set_block_elements(mlir::ft::kBlockElements);
  plan.set_shards_parameters(flagOf(module, "ft.shards_parameters"));
  plan.set_shards_gradients(flagOf(module, "ft.shards_gradients"));
  plan.set_shards_optimizer(flagOf(module, "ft.shards_optimizer"));
  plan.set_two_axes(flagOf(module, "ft.two_axes"));
  auto microSteps = module->getAttrOfType<IntegerAttr>("ft.micro_steps");
  plan.set_micro_steps(microSteps ? microSteps.getInt() : 1);
  if (failed(emitShape(module, plan)))
    return failure();
  auto facts = mlir::ft::factsOf(module);
  if (failed(facts))
    return failure();
  if (facts->has_value())
    ::ft::SetFacts(**facts, plan);
  Numbering numbers(module);
  if (failed(emitTables(module, numbers, plan)) || failed(emitClusters(module, numbers, plan)))
    return failure();
  for (ProgramOp program : module.getOps<ProgramOp>())
    if (failed(emitProgram(program, numbers, *plan.add_programs())))
      return failure();
  for (const auto &[name, value] : info.settings) {
    proto::Attribute &setting = *plan.add_settings();
    setting.set_name(name);
    setting.set_f(value);
  }
  for (const auto &[name, value] : info.textSettings) {
    proto::Attribute &setting = *plan.add_settings();
    setting.set_name(name);
    setting.set_s(value);
  }
  return success();
}

} // namespace ft::compiler
