#include "compiler/pipeline/check_model.h"

#include "compiler/composites/check_composites.h"
#include "compiler/pipeline/check_attributes.h"
#include "compiler/pipeline/check_facts.h"
#include "compiler/pipeline/check_lookups.h"
#include "compiler/pipeline/check_parameters.h"
#include "compiler/pipeline/check_signature.h"
#include "dialects/ft/composites.h"

namespace ft::compiler {

using namespace mlir;
using namespace mlir::ft;

namespace {

LogicalResult checkOps(ModuleOp module, func::FuncOp forward) {
  for (ParameterOp parameter : module.getOps<ParameterOp>())
    if (failed(checkOpAttributes(*parameter)))
      return failure();
  for (Operation &op : forward.getBody().front()) {
    if (!isa<GetOp, InputOp, DifferentiableOpInterface, KernelOpInterface, CompositeOpInterface,
             ShorthandOpInterface, func::ReturnOp>(op))
      return op.emitOpError("cannot stand in a model; models are made of the compute ops of dialect ft")
             << (isa<func::CallOp>(op) ? ", and call composites with ft.call" : "");
    if (failed(checkOpAttributes(op)))
      return failure();
  }
  return success();
}

/// Sizes in bytes, in elements of a unit and over all ranks stay far below 2^63 when a tensor stays below
/// this.
constexpr int64_t kMaxElements = int64_t{1} << 44;

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
  for (auto function : module.getOps<func::FuncOp>()) {
    for (Type type : function.getArgumentTypes())
      if (!isPossible(type))
        return function.emitError() << "an argument of " << type << " is larger than any memory";
    for (Operation &op : function.getBody().front())
      for (Type type : op.getResultTypes())
        if (!isPossible(type))
          return op.emitError() << type << " is larger than any memory";
  }
  return success();
}

/// Programs are functions of the module, too.
LogicalResult checkNames(ModuleOp module) {
  constexpr llvm::StringLiteral programs[] = {kTrainStepFunction, kTrainMicroFunction, kEvalStepFunction,
                                              kSampleStepFunction, kInitFunction};
  for (Operation &op : *module.getBody())
    if (auto symbol = dyn_cast<SymbolOpInterface>(op);
        symbol && llvm::is_contained(programs, symbol.getName()))
      return op.emitError() << "@" << symbol.getName()
                            << " is what the compiler calls one of its programs; give it another name";
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
  if (failed(checkNames(module)) || failed(checkParameters(module)) || failed(checkSignature(forward)) ||
      failed(checkComposites(module)) || failed(checkModuleAttributes(module, forward)) ||
      failed(checkOps(module, forward)) || failed(checkSizes(module)))
    return failure();
  if (!module->hasAttr(kModelAttr))
    module->setAttr(kModelAttr, StringAttr::get(module.getContext(), name));
  if (failed(checkLookups(module, forward)))
    return failure();
  return checkFacts(module, forward);
}

} // namespace ft::compiler
