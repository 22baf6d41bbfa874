#include "compiler/pipeline/check_model.h"

#include "compiler/composites/check_composites.h"
#include "compiler/pipeline/check_attributes.h"
#include "compiler/pipeline/check_facts.h"
#include "compiler/pipeline/check_parameters.h"
#include "dialects/ft/composites.h"
#include "llvm/ADT/TypeSwitch.h"

#include <optional>

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
    if (!isa<GetOp, InputOp, DifferentiableOpInterface, KernelOpInterface, CompositeOpInterface,
             func::ReturnOp>(op))
      return op.emitOpError("cannot stand in a model; models are made of the compute ops of dialect ft")
             << (isa<func::CallOp>(op) ? ", and call composites with ft.call" : "");
  return success();
}

/// Sizes in bytes, in elements of a unit and over all ranks stay far below 2^63 when a tensor stays below
/// this.
constexpr int64_t kMaxElements = int64_t{1} << 44;
constexpr int64_t kMaxExtent = int64_t{1} << 31;

bool isPossible(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  int64_t elements = 1;
  for (int64_t extent : tensor ? tensor.getShape() : ArrayRef<int64_t>()) {
    if (extent >= kMaxExtent || elements > kMaxElements / extent)
      return false;
    elements *= extent;
  }
  return true;
}

LogicalResult checkSizes(ModuleOp module) {
  for (ParameterOp parameter : module.getOps<ParameterOp>())
    if (!isPossible(parameter.getType()))
      return parameter.emitError() << parameter.getType() << " is larger than any memory";
  for (auto function : module.getOps<func::FuncOp>())
    for (Operation &op : function.getBody().front())
      for (Type type : op.getResultTypes())
        if (!isPossible(type))
          return op.emitError() << type << " is larger than any memory";
  return success();
}

/// The rows of the table in which the tokens are looked up, unless the module says it.
FailureOr<int64_t> findVocabulary(ModuleOp module, func::FuncOp forward) {
  if (Attribute attr = module->getAttr(kVocabSizeAttr)) {
    auto size = dyn_cast<IntegerAttr>(attr);
    if (!size || !size.getType().isInteger(64) || size.getInt() < 1 || size.getInt() >= kMaxExtent)
      return module.emitError() << "'" << kVocabSizeAttr << "' is " << attr << "; expected a positive i64";
    return size.getInt();
  }
  for (EmbeddingOp op : forward.getOps<EmbeddingOp>()) {
    if (op.getIds() != forward.getArgument(0))
      continue;
    int64_t rows = cast<RankedTensorType>(op.getTable().getType()).getDimSize(0);
    module->setAttr(kVocabSizeAttr, Builder(module.getContext()).getI64IntegerAttr(rows));
    return rows;
  }
  return forward.emitError()
         << "no ft.embedding looks up the tokens, so the vocabulary is unknown; set the module's attribute '"
         << kVocabSizeAttr << "'";
}

/// `ids` are below this; no value for ids that are computed.
std::optional<int64_t> countOfIds(Value ids, int64_t vocabulary) {
  if (isa<BlockArgument>(ids))
    return vocabulary;
  if (ids.getDefiningOp<IotaOp>())
    return cast<RankedTensorType>(ids.getType()).getNumElements();
  return std::nullopt;
}

/// `op` has a row, or a class, for each of `ids`.
LogicalResult checkIds(Operation &op, Value ids, int64_t rows, int64_t vocabulary) {
  std::optional<int64_t> count = countOfIds(ids, vocabulary);
  if (!count || *count <= rows)
    return success();
  return op.emitOpError() << "chooses among " << rows << " but its ids go from 0 to " << *count - 1;
}

LogicalResult checkLookups(ModuleOp module, func::FuncOp forward) {
  FailureOr<int64_t> vocabulary = findVocabulary(module, forward);
  if (failed(vocabulary))
    return failure();
  auto extent = [](Value value, bool last) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
    return last ? shape.back() : shape.front();
  };
  for (Operation &op : forward.getBody().front()) {
    LogicalResult result =
        llvm::TypeSwitch<Operation *, LogicalResult>(&op)
            .Case([&](EmbeddingOp embedding) {
              return checkIds(op, embedding.getIds(), extent(embedding.getTable(), false), *vocabulary);
            })
            .Case([&](CrossEntropyOp loss) {
              return checkIds(op, loss.getTargets(), extent(loss.getLogits(), true), *vocabulary);
            })
            .Case([&](LinearCrossEntropyOp loss) {
              return checkIds(op, loss.getTargets(), extent(loss.getWeight(), false), *vocabulary);
            })
            .Default(success());
    if (failed(result))
      return failure();
  }
  return success();
}

} // namespace

LogicalResult checkModel(ModuleOp module, StringRef name) {
  func::FuncOp forward;
  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
    if (isComposite(function))
      continue;
    if (function.getSymName() != kForwardFunction)
      return function.emitError() << "a model has one function, @forward, and composites, which are private "
                                     "and have the attribute "
                                  << kCompositeAttr << "; what is @" << function.getSymName() << "?";
    forward = function;
  }
  if (!forward)
    return module.emitError("no function @forward; a model is a module with ft.parameter ops and @forward");
  if (failed(checkParameters(module)) || failed(checkSignature(forward)) || failed(checkComposites(module)) ||
      failed(checkModuleAttributes(module, forward)) || failed(checkOps(forward)) ||
      failed(checkSizes(module)))
    return failure();
  if (!module->hasAttr(kModelAttr))
    module->setAttr(kModelAttr, StringAttr::get(module.getContext(), name));
  if (failed(checkLookups(module, forward)))
    return failure();
  return checkFacts(module, forward);
}

} // namespace ft::compiler
