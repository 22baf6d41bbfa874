#include "compiler/autodiff/composite_gradients.h"

#include "compiler/autodiff/joined_parts.h"
#include "compiler/autodiff/reverse_mode.h"
#include "compiler/autodiff/row_factors.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::ft {
namespace {

// Numbers, unless they are those of all floats among `types`.
std::string unlessAll(StringRef before, ArrayRef<unsigned> numbers, TypeRange types) {
  auto isFloat = [](Type type) { return isa<FloatType>(cast<RankedTensorType>(type).getElementType()); };
  std::string text;
  if (numbers.size() != static_cast<size_t>(llvm::count_if(types, isFloat)))
    for (unsigned number : numbers)
      text += "_" + std::to_string(number);
  return text.empty() ? text : before.str() + text;
}

// Takes away arguments that nobody reads; numbers of the others.
SmallVector<unsigned> keepWhatIsRead(func::FuncOp function) {
  SmallVector<unsigned> read;
  llvm::BitVector unread(function.getNumArguments());
  for (BlockArgument argument : function.getArguments()) {
    unread[argument.getArgNumber()] = argument.use_empty();
    if (!argument.use_empty())
      read.push_back(argument.getArgNumber());
  }
  (void)function.eraseArguments(unread);
  return read;
}

void eraseDead(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

} // namespace

SmallVector<Value> CompositeGradients::buildGradient(OpBuilder &builder, CallOp call,
                                                     ArrayRef<Value> resultGrads, ArrayRef<bool> needed) {
  Wanted wanted;
  SmallVector<Value> inputs(call.getInputs());
  for (auto [number, gradient] : llvm::enumerate(resultGrads))
    if (gradient) {
      wanted.results.push_back(number);
      inputs.push_back(gradient);
    }
  SmallVector<Type> types;
  SmallVector<int64_t> ofParameters;
  for (auto [number, operand] : llvm::enumerate(call.getInputs()))
    if (needed[number]) {
      if (operand.getDefiningOp<GetOp>())
        ofParameters.push_back(wanted.operands.size());
      wanted.operands.push_back(number);
      types.push_back(operand.getType());
    }
  const Derivative *derivative = derivativeOf(symbols.lookup<func::FuncOp>(call.getCallee()), wanted);
  if (!derivative)
    return {};
  func::FuncOp function = derivative->function;
  auto read = llvm::map_to_vector(derivative->reads, [&](unsigned number) { return inputs[number]; });
  auto gradient =
      CallOp::create(builder, call.getLoc(), types, FlatSymbolRefAttr::get(function.getSymNameAttr()), read,
                     ofParameters.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(ofParameters),
                     call.getStreamsAttr());
  SmallVector<Value> contributions(call.getNumOperands());
  for (auto [number, value] : llvm::zip_equal(wanted.operands, gradient.getOutputs()))
    contributions[number] = value;
  return contributions;
}

const CompositeGradients::Derivative *CompositeGradients::derivativeOf(func::FuncOp composite,
                                                                       const Wanted &wanted) {
  std::string name = composite.getSymName().str() + ".grad" +
                     unlessAll("", wanted.operands, composite.getArgumentTypes()) +
                     unlessAll("_from", wanted.results, composite.getResultTypes());
  auto [entry, isNew] = made.try_emplace(name);
  if (!isNew)
    return entry->second.function ? &entry->second : nullptr;
  func::FuncOp function = composite.clone();
  function.setSymName(name);
  if (OriginAttr origin = originOf(composite))
    function->setAttr(kOriginAttr, OriginAttr::get(origin.getContext(), OriginKind::derivative,
                                                   origin.getOp(), origin.getProperties()));
  symbols.insert(
      function,
      ModuleOp(symbols.getOp()).getBody()->end()); // which renames it where there is such a function
  if (failed(differentiate(function, wanted)))
    return nullptr;
  Derivative &derivative = made[name];
  derivative.function = function;
  derivative.reads = keepWhatIsRead(function);
  return &derivative;
}

// The clone of a composite becomes its derivative.
LogicalResult CompositeGradients::differentiate(func::FuncOp function, const Wanted &wanted) {
  Block &block = function.getBody().front();
  Operation *end = block.getTerminator();
  SmallVector<Value> variables, outputs;
  for (unsigned operand : wanted.operands)
    variables.push_back(block.getArgument(operand));
  for (unsigned result : wanted.results)
    outputs.push_back(end->getOperand(result));
  ReverseMode reverse(block, variables, outputs, *this);
  for (Value output : outputs)
    reverse.seed(output, block.addArgument(output.getType(), output.getLoc()));
  ReverseMode::Observer nobody;
  if (failed(reverse.run(nobody)))
    return failure();
  SmallVector<Value> gradients;
  for (Value variable : variables) {
    Value gradient = reverse.gradientOf(variable);
    if (!gradient)
      gradient = FillOp::create(reverse.ops(), function.getLoc(), variable.getType(),
                                reverse.ops().getF64FloatAttr(0.0));
    gradients.push_back(gradient);
  }
  end->setOperands(gradients);
  takeFactorsOutOfSums(block);
  joinParts(block);
  eraseDead(block);
  function.setFunctionType(
      FunctionType::get(function.getContext(), block.getArgumentTypes(), end->getOperandTypes()));
  return success();
}

} // namespace mlir::ft
