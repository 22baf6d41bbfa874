#include "compiler/pipeline/check_model.h"

#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ft::compiler {

using namespace mlir;
using namespace mlir::ft;

namespace {

LogicalResult checkSignature(func::FuncOp forward) {
  FunctionType type = forward.getFunctionType();
  auto tokens = type.getNumInputs() == 2 ? dyn_cast<RankedTensorType>(type.getInput(0)) : RankedTensorType();
  bool inputs = tokens && tokens.hasStaticShape() && tokens.getRank() == 2 &&
                tokens.getElementType().isInteger(32) && type.getInput(1) == tokens;
  auto loss = type.getNumResults() == 1 ? dyn_cast<RankedTensorType>(type.getResult(0)) : RankedTensorType();
  if (!inputs || !loss || loss.getRank() != 0 || !loss.getElementType().isF32())
    return forward.emitError()
           << "@forward must be (tokens: tensor<BxTxi32>, targets: tensor<BxTxi32>) -> tensor<f32>, not "
           << type;
  if (!forward.getBody().hasOneBlock())
    return forward.emitError("@forward must have a body of one block");
  return success();
}

LogicalResult checkOps(func::FuncOp forward) {
  for (Operation &op : forward.getBody().front())
    if (!isa<GetOp, InputOp, DifferentiableOpInterface, KernelOpInterface, func::ReturnOp>(op))
      return op.emitOpError("cannot stand in a model; models are made of the compute ops of dialect ft");
  return success();
}

/// The rows of the table in which the tokens are looked up.
LogicalResult findVocabulary(ModuleOp module, func::FuncOp forward) {
  if (module->hasAttr(kVocabSizeAttr))
    return success();
  for (EmbeddingOp op : forward.getOps<EmbeddingOp>()) {
    if (op.getIds() != forward.getArgument(0))
      continue;
    int64_t rows = cast<RankedTensorType>(op.getTable().getType()).getDimSize(0);
    module->setAttr(kVocabSizeAttr, Builder(module.getContext()).getI64IntegerAttr(rows));
    return success();
  }
  return forward.emitError()
         << "no ft.embedding looks up the tokens, so the vocabulary is unknown; set the module's attribute '"
         << kVocabSizeAttr << "'";
}

} // namespace

LogicalResult checkModel(ModuleOp module, StringRef name) {
  func::FuncOp forward;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.getSymName() != kForwardFunction)
      return function.emitError() << "a model has one function, @forward; what is @" << function.getSymName()
                                  << "?";
    forward = function;
  }
  if (!forward)
    return module.emitError("no function @forward; a model is a module with ft.parameter ops and @forward");
  if (module.getOps<ParameterOp>().empty())
    return module.emitError("no ft.parameter: there is nothing to train");
  if (failed(checkSignature(forward)) || failed(checkOps(forward)))
    return failure();
  if (!module->hasAttr(kModelAttr))
    module->setAttr(kModelAttr, StringAttr::get(module.getContext(), name));
  return findVocabulary(module, forward);
}

} // namespace ft::compiler
