#include "compiler/emit/emit_plan.h"

#include "compiler/emit/emit_parts.h"
#include "compiler/encode/encode.h"
#include "dialects/ft/facts.h"
#include "dialects/ft/lora.h"
#include "dialects/ft/signature.h"
#include "runtime/plan/inputs.h"
#include "runtime/plan/plan_facts.h"

namespace ft::compiler {

using namespace mlir;
using mlir::ft::ModelInput;
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

/// What fills an input, by its name and type.
proto::Input::Filling fillingOf(const ModelInput &input, DType dtype) {
  if (input.isConstant)
    return input.value ? proto::Input::VALUE : proto::Input::CONSTANT;
  std::optional<proto::Input::Filling> known = FillingOf(input.name);
  // Labels that the model does not shift are of masked tokens, or classes of tokens: no file of tokens has
  // them.
  bool fits = known && CanBeFilled(*known, dtype, static_cast<int>(input.type.getRank())) &&
              (*known != proto::Input::LABELS || input.isShifted);
  return fits ? *known : proto::Input::TENSOR;
}

bool hasTokens(const proto::Input &input) {
  return input.filling() == proto::Input::TOKENS || input.filling() == proto::Input::TARGETS;
}

/// Elements as they lie in memory; truth values are a byte each.
std::string bytesOf(mlir::DenseElementsAttr value) {
  std::string bytes;
  if (value.getElementType().isInteger(1)) {
    for (bool element : value.getValues<bool>())
      bytes.push_back(element ? 1 : 0);
    return bytes;
  }
  ArrayRef<char> raw = value.getRawData();
  int64_t copies = value.isSplat() ? value.getNumElements() : 1;
  for (int64_t i = 0; i < copies; ++i)
    bytes.append(raw.begin(), raw.end());
  return bytes;
}

LogicalResult emitInput(ModuleOp module, const ModelInput &input, proto::Input &out) {
  auto dtype = dtypeOf(input.type.getElementType());
  if (!dtype)
    return module.emitError() << "input '" << input.name << "' is of type " << input.type
                              << ", which a plan cannot hold";
  out.set_name(input.name);
  out.set_dtype(*dtype);
  for (int64_t extent : input.type.getShape())
    out.add_shape(extent);
  out.set_filling(fillingOf(input, static_cast<DType>(*dtype)));
  out.set_ids_below(input.idsBelow);
  out.set_may_be_left_out(input.mayBeLeftOut);
  out.set_counted(input.isCounted);
  if (input.value)
    out.set_value(bytesOf(input.value));
  return success();
}

/// Whether it goes with the sequences of a plan: of their length; labels choose among the vocabulary.
bool fitsSequences(const proto::Plan &plan, const proto::Input &input) {
  if (input.filling() == proto::Input::LENGTHS)
    return true;
  bool isVocabulary = input.ids_below() == 0 || input.ids_below() == plan.vocab_size();
  return input.shape(1) == plan.seq_len() && (input.filling() != proto::Input::LABELS || isVocabulary);
}

/// Sequences are as long as the first input says that has tokens; what is of another length is filled by
/// tensors, and so is what another input is filled by already.
void emitSequences(proto::Plan &plan) {
  plan.set_seq_len(1);
  auto first = plan.vocab_size() > 0 ? llvm::find_if(plan.inputs(), hasTokens) : plan.inputs().end();
  if (first != plan.inputs().end())
    plan.set_seq_len(first->shape(1));
  llvm::SmallDenseSet<int> filled;
  for (proto::Input &input : *plan.mutable_inputs()) {
    if (!IsOfTokens(input.filling()))
      continue;
    bool fits = first != plan.inputs().end() && fitsSequences(plan, input);
    if (!fits || !filled.insert(input.filling()).second)
      input.set_filling(proto::Input::TENSOR);
  }
}

LogicalResult emitInputs(ModuleOp module, proto::Plan &plan) {
  auto inputs = mlir::ft::inputsOf(module);
  if (!inputs)
    return module.emitError() << "the module has no attribute '" << mlir::ft::kInputsAttr << "'";
  for (const ModelInput &input : *inputs)
    if (failed(emitInput(module, input, *plan.add_inputs())))
      return failure();
  auto varies = llvm::find_if(*inputs, [](const ModelInput &input) { return !input.isConstant; });
  plan.set_batch(varies == inputs->end() ? 0 : varies->type.getDimSize(0));
  if (auto vocabulary = module->getAttrOfType<IntegerAttr>(mlir::ft::kVocabSizeAttr))
    plan.set_vocab_size(vocabulary.getInt());
  emitSequences(plan);
  return success();
}

void emitLora(const mlir::ft::Lora &lora, proto::Lora &out) {
  out.set_rank(lora.rank);
  out.set_alpha(lora.alpha);
  out.set_dropout(lora.dropout);
  out.set_rslora(lora.rslora);
  out.set_input_first(lora.inputFirst);
  for (const std::string &module : lora.modules)
    out.add_modules(module);
  for (const std::string &module : lora.saved)
    out.add_saved(module);
}

} // namespace

LogicalResult emitPlan(ModuleOp module, const PlanInfo &info, proto::Plan &plan) {
  plan.set_producer(info.producer);
  plan.set_model(textOf(module, mlir::ft::kModelAttr));
  plan.set_strategy(textOf(module, "ft.strategy"));
  plan.set_tokenizer_hash(textOf(module, mlir::ft::kTokenizerAttr));
  plan.set_shards_parameters(flagOf(module, "ft.shards_parameters"));
  plan.set_shards_gradients(flagOf(module, "ft.shards_gradients"));
  plan.set_shards_optimizer(flagOf(module, "ft.shards_optimizer"));
  plan.set_two_axes(flagOf(module, "ft.two_axes"));
  auto microSteps = module->getAttrOfType<IntegerAttr>("ft.micro_steps");
  plan.set_micro_steps(microSteps ? microSteps.getInt() : 1);
  if (failed(emitInputs(module, plan)))
    return failure();
  auto facts = mlir::ft::factsOf(module);
  if (failed(facts))
    return failure();
  if (facts->has_value())
    ::ft::SetFacts(**facts, plan);
  if (std::optional<mlir::ft::Lora> lora = mlir::ft::loraOf(module))
    emitLora(*lora, *plan.mutable_lora());
  Numbering numbers(module);
  if (failed(emitTables(module, numbers, plan)) || failed(emitClusters(module, numbers, plan)))
    return failure();
  for (ProgramOp program : module.getOps<ProgramOp>())
    if (failed(encodeProgram(program, numbers, *plan.add_programs())))
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
