#include "compiler/pipeline/check_signature.h"

#include "dialects/ft/dialect.h"
#include "dialects/ft/signature.h"
#include "llvm/ADT/StringSet.h"

#include <string_view>
#include <vector>

#include "runtime/base/did_you_mean.h"
#include "runtime/base/printable.h"
#include "runtime/plan/inputs.h"

namespace ft::compiler {

using namespace mlir;
using namespace mlir::ft;

namespace {

std::string quoted(StringRef name) { return Quote({name.data(), name.size()}); }

/// tokens and targets, as models have them that name no inputs.
LogicalResult checkPositions(func::FuncOp forward) {
  FunctionType type = forward.getFunctionType();
  auto tokens = type.getNumInputs() == 2 ? dyn_cast<RankedTensorType>(type.getInput(0)) : RankedTensorType();
  bool inputs = tokens && tokens.hasStaticShape() && tokens.getRank() == 2 &&
                tokens.getElementType().isInteger(32) && type.getInput(1) == tokens;
  if (inputs)
    return success();
  return forward.emitError() << "@forward must be (tokens: tensor<BxTxi32>, targets: tensor<BxTxi32>) -> "
                                "tensor<f32>, or give each argument a name, {ft.input = \"...\"}; it is "
                             << type;
}

/// A name that nothing else has.
LogicalResult checkName(func::FuncOp forward, StringRef what, StringRef name, llvm::StringSet<> &names) {
  std::string_view text(name.data(), name.size());
  if (!IsSignatureName(text))
    return forward.emitError() << what << " cannot be called " << quoted(name) << "; expected at most "
                               << kMaxInputName << " letters, digits and underscores, no digit first";
  if (IsReservedName(text))
    return forward.emitError() << what << " cannot be called " << quoted(name)
                               << ", which means something else already";
  if (!names.insert(name).second)
    return forward.emitError() << "two inputs or outputs are called " << quoted(name);
  return success();
}

LogicalResult checkAttributes(func::FuncOp forward, DictionaryAttr attributes, StringRef what,
                              ArrayRef<StringLiteral> known) {
  for (NamedAttribute attribute : attributes ? attributes : DictionaryAttr::get(forward.getContext())) {
    StringRef name = attribute.getName().getValue();
    if (!name.starts_with("ft.") || llvm::is_contained(known, name))
      continue;
    std::vector<std::string_view> names;
    for (StringRef row : known)
      names.emplace_back(row.data(), row.size());
    return forward.emitError() << UnknownName(("attribute of " + what).str(), {name.data(), name.size()},
                                              names);
  }
  return success();
}

/// Of one argument that has a name.
class InputCheck {
public:
  InputCheck(func::FuncOp forward, BlockArgument argument)
      : forward(forward), argument(argument), name(inputName(forward, argument.getArgNumber())),
        type(dyn_cast<RankedTensorType>(argument.getType())) {}

  LogicalResult run(llvm::StringSet<> &names) {
    if (failed(checkAttributes(forward, forward.getArgAttrDict(argument.getArgNumber()), "an argument",
                               {kInputAttr, kConstantAttr})))
      return failure();
    if (name.empty())
      return forward.emitError() << "argument " << argument.getArgNumber() + 1
                                 << " of @forward has no name, {ft.input = \"...\"}, but another one has";
    return failure(failed(checkName(forward, "an input", name, names)) || failed(checkType()) ||
                   failed(checkValue()) || failed(checkBatch()) || failed(checkUses()));
  }

private:
  InFlightDiagnostic emitError() { return forward.emitError() << "input " << quoted(name) << " "; }

  LogicalResult checkType() {
    bool known = type && isKernelShape(type) &&
                 (type.getElementType().isF32() || type.getElementType().isBF16() ||
                  type.getElementType().isInteger(1) || type.getElementType().isInteger(32) ||
                  type.getElementType().isInteger(64));
    if (known)
      return success();
    return emitError() << "is " << argument.getType()
                       << "; expected a tensor of i32, i64, f32, bf16 or i1 with at most 8 positive static "
                          "dimensions";
  }

  LogicalResult checkValue() {
    unsigned number = argument.getArgNumber();
    Attribute constant = forward.getArgAttr(number, kConstantAttr);
    DenseElementsAttr value = valueOfInput(forward, number);
    if (!constant || isa<UnitAttr>(constant) || (value && value.getType() == type))
      return success();
    return emitError() << "is " << type
                       << ", which its value is not; expected ft.constant alone, for data to "
                       << "fill it, or ft.constant = dense<...> : " << type;
  }

  LogicalResult checkBatch() {
    if (isConstantInput(forward, argument.getArgNumber()))
      return success();
    int64_t batch = batchOf(forward);
    if (type.getRank() > 0 && type.getDimSize(0) == batch)
      return success();
    return emitError() << "is " << type << ", whose first dimension is not the batch of " << batch
                       << "; if it is the same for all examples, say so with ft.constant";
  }

  /// A model computes in f32, and the compiler decides on other types.
  LogicalResult checkUses() {
    if (!type.getElementType().isBF16())
      return success();
    for (Operation *user : argument.getUsers()) {
      auto copy = dyn_cast<CopyOp>(user);
      if (!copy || !cast<RankedTensorType>(copy.getType()).getElementType().isF32())
        return emitError() << "is bf16, which " << user->getName().getStringRef()
                           << " cannot read; make it f32 first: ft.copy %x : " << type << " -> "
                           << type.clone(Float32Type::get(type.getContext()));
    }
    return success();
  }

  func::FuncOp forward;
  BlockArgument argument;
  StringRef name;
  RankedTensorType type;
};

LogicalResult checkInputs(func::FuncOp forward, llvm::StringSet<> &names) {
  if (!namesInputs(forward) && failed(checkPositions(forward)))
    return failure();
  if (forward.getNumArguments() > kMaxInputs)
    return forward.emitError() << "@forward has " << forward.getNumArguments() << " inputs; at most "
                               << kMaxInputs << " are possible";
  if (batchOf(forward) == 0)
    return forward.emitError(
        "@forward needs an input that is no constant, whose first dimension is the batch");
  for (BlockArgument argument : forward.getArguments())
    if (failed(InputCheck(forward, argument).run(names)))
      return failure();
  return success();
}

bool isScalar(Type type) { return type == RankedTensorType::get({}, Float32Type::get(type.getContext())); }

LogicalResult checkOutputs(func::FuncOp forward, llvm::StringSet<> &names) {
  if (forward.getNumResults() == 0 || !isScalar(forward.getResultTypes()[0]))
    return forward.emitError() << "@forward must return the loss, tensor<f32>, first; it is "
                               << forward.getFunctionType();
  if (forward.getNumResults() > 1 + kMaxOutputs)
    return forward.emitError() << "@forward has " << forward.getNumResults() - 1
                               << " outputs beside the loss; at most " << kMaxOutputs << " are possible";
  names.insert(kTokensInput); // "eval_tokens" is how many there were
  for (unsigned i = 0; i < forward.getNumResults(); ++i) {
    StringRef name = outputName(forward, i);
    if (failed(checkAttributes(forward, forward.getResultAttrDict(i), "a result", {kOutputAttr})))
      return failure();
    if (i == 0 && forward.getResultAttr(0, kOutputAttr))
      return forward.emitError("the first result of @forward is the loss, which has no ft.output");
    if (i == 0)
      continue;
    if (name.empty())
      return forward.emitError() << "result " << i + 1
                                 << " of @forward has no name, {ft.output = \"...\"}; only the loss has none";
    if (failed(checkName(forward, "an output", name, names)))
      return failure();
    if (!isScalar(forward.getResultTypes()[i]))
      return forward.emitError() << "output " << quoted(name) << " is " << forward.getResultTypes()[i]
                                 << "; expected tensor<f32>, a mean over the batch, which evaluation reports";
  }
  return success();
}

} // namespace

LogicalResult checkSignature(func::FuncOp forward) {
  if (!forward.getBody().hasOneBlock())
    return forward.emitError("@forward must have a body of one block");
  llvm::StringSet<> names;
  return failure(failed(checkInputs(forward, names)) || failed(checkOutputs(forward, names)));
}

} // namespace ft::compiler
