#include "compiler/pipeline/check_parameters.h"

#include "dialects/ft/dialect.h"
#include "runtime/base/stored_parts.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ConvertUTF.h"

namespace ft::compiler {

using namespace mlir;
using mlir::ft::ParameterOp;

namespace {

// The key under which safetensors keeps its own notes.
constexpr llvm::StringLiteral kReservedName = "__metadata__";

bool isText(StringRef string) {
  const auto *begin = reinterpret_cast<const llvm::UTF8 *>(string.data());
  return llvm::isLegalUTF8String(&begin, begin + string.size());
}

std::string escaped(StringRef string) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::printEscapedString(string, stream);
  return text;
}

LogicalResult takeName(ParameterOp parameter, StringRef name, llvm::StringMap<ParameterOp> &owners) {
  if (!isText(name))
    return parameter.emitError() << "the name \"" << escaped(name) << "\" is not UTF-8";
  if (name.empty() || name == kReservedName)
    return parameter.emitError() << "a tensor of a checkpoint cannot be called \"" << name << "\"";
  auto [owner, isNew] = owners.try_emplace(name, parameter);
  if (isNew)
    return success();
  InFlightDiagnostic error = parameter.emitError() << "the name \"" << name << "\" is given twice";
  error.attachNote(owner->second.getLoc()) << "it is a name of @" << owner->second.getSymName();
  return error;
}

LogicalResult checkParts(ParameterOp parameter, llvm::StringMap<ParameterOp> &owners) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(parameter.getType()).getShape();
  auto parts = ::ft::StoredParts(*parameter.getStoredAs(), shape.vec());
  if (!parts.ok())
    return parameter.emitError() << "stored_as: " << std::string(parts.status().message());
  for (const ::ft::StoredPart &part : *parts)
    if (failed(takeName(parameter, part.name, owners)))
      return failure();
  return success();
}

} // namespace

// Whether a gradient of `loss` comes to a parameter that is trained.
static bool reachesTrained(ModuleOp module, Value loss) {
  llvm::SetVector<Value> reached;
  reached.insert(loss);
  for (size_t i = 0; i < reached.size(); ++i) {
    Operation *op = reached[i].getDefiningOp();
    if (!op || isa<mlir::ft::StopGradientOp>(op) || !isa<FloatType>(getElementTypeOrSelf(reached[i])))
      continue;
    auto get = dyn_cast<mlir::ft::GetOp>(op);
    if (get && !module.lookupSymbol<ParameterOp>(get.getParameter()).getFrozen())
      return true;
    reached.insert(op->operand_begin(), op->operand_end());
  }
  return false;
}

LogicalResult checkTrained(ModuleOp module) {
  if (llvm::all_of(module.getOps<ParameterOp>(), [](ParameterOp parameter) { return parameter.getFrozen(); }))
    return module.emitError("every ft.parameter is frozen: there is nothing to train");
  auto forward = module.lookupSymbol<func::FuncOp>(mlir::ft::kForwardFunction);
  Operation *end = forward.getBody().front().getTerminator();
  if (!reachesTrained(module, end->getOperand(0)))
    return end->emitError(
        "the loss does not depend on a parameter that is trained: there is nothing to train");
  return success();
}

LogicalResult checkParameters(ModuleOp module) {
  if (module.getOps<ParameterOp>().empty())
    return module.emitError("no ft.parameter: there is nothing to train");
  llvm::StringMap<ParameterOp> owners;
  for (ParameterOp parameter : module.getOps<ParameterOp>()) {
    if (failed(takeName(parameter, parameter.getSymName(), owners)))
      return failure();
    if (!isText(parameter.getLayer().value_or("")))
      return parameter.emitError() << "the layer \"" << escaped(*parameter.getLayer()) << "\" is not UTF-8";
  }
  for (ParameterOp parameter : module.getOps<ParameterOp>())
    if (auto aliases = parameter.getAliases())
      for (auto alias : aliases->getAsRange<StringAttr>())
        if (failed(takeName(parameter, alias.getValue(), owners)))
          return failure();
  for (ParameterOp parameter : module.getOps<ParameterOp>())
    if (parameter.getStoredAs() && failed(checkParts(parameter, owners)))
      return failure();
  return success();
}

} // namespace ft::compiler
