#include "tools/ftc/dump.h"

#include <string_view>
#include <vector>

#include "dialects/ft/dialect.h"
#include "fmt/format.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/SymbolTable.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/base/glob.h"

namespace ftc {
namespace {

std::string TextOf(mlir::Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  attribute.print(stream);
  return text;
}

// As MLIR writes the name of an attribute.
std::string NameText(llvm::StringRef name) {
  const bool plain = !name.empty() && !llvm::isDigit(name.front()) && llvm::all_of(name, [](char c) {
    return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$';
  });
  if (plain) return name.str();
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << '"';
  llvm::printEscapedString(name, stream);
  stream << '"';
  return text;
}

// "name = value"; the elements of a list each in a line.
std::string ModuleAttributeText(mlir::NamedAttribute attribute) {
  const std::string name = NameText(attribute.getName().getValue());
  if (llvm::isa<mlir::UnitAttr>(attribute.getValue())) return name;
  const auto list = llvm::dyn_cast<mlir::ArrayAttr>(attribute.getValue());
  if (!list || list.size() < 2) return name + " = " + TextOf(attribute.getValue());
  std::string text = name + " = [";
  for (size_t i = 0; i < list.size(); ++i) text += (i == 0 ? "\n    " : ",\n    ") + TextOf(list[i]);
  return text + "]";
}

// Of an op that has functions or programs by name.
llvm::StringRef FunctionName(mlir::Operation& op) {
  const auto name = op.getNumRegions() == 0
                        ? mlir::StringAttr()
                        : op.getAttrOfType<mlir::StringAttr>(mlir::SymbolTable::getSymbolAttrName());
  return name ? name.getValue() : llvm::StringRef();
}

// Whether the glob matches the layer, or some words of it that stand in a row.
bool IsOfLayer(llvm::StringRef layer, llvm::StringRef glob) {
  llvm::SmallVector<llvm::StringRef> words;
  layer.split(words, '.');
  for (size_t begin = 0; begin < words.size(); ++begin) {
    for (size_t end = begin; end < words.size(); ++end) {
      const llvm::StringRef some(
          words[begin].data(),
          static_cast<size_t>(words[end].data() - words[begin].data()) + words[end].size());
      if (ft::MatchesGlob(glob, some)) return true;
    }
  }
  return false;
}

// An op as it stands in the module, its names those of `state`.
std::string OpText(mlir::Operation& op, mlir::AsmState& state) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op.print(stream, state);
  return text;
}

absl::Status NothingMatches(const DumpRequest& request, const std::vector<std::string>& functions) {
  if (!request.function.empty() && !llvm::is_contained(functions, request.function)) {
    const std::vector<std::string_view> names(functions.begin(), functions.end());
    return absl::InvalidArgumentError(fmt::format("--dump: after stage {}: {}", request.stage,
                                                  ft::UnknownName("function", request.function, names)));
  }
  return absl::InvalidArgumentError(fmt::format(
      "--dump: after stage {} no op{} is of layer '{}'; --dump={} shows the layers of all ops", request.stage,
      request.function.empty() ? "" : " of @" + request.function, request.layer, request.stage));
}

}  // namespace

std::string ModuleText(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  constexpr std::string_view kBegin = "module attributes {";
  const size_t line = text.find('\n');
  if (text.compare(0, kBegin.size(), kBegin) != 0 || line == std::string::npos) return text + "\n";
  std::string attributes;
  for (const mlir::NamedAttribute attribute : module->getDiscardableAttrs())
    attributes += (attributes.empty() ? "\n  " : ",\n  ") + ModuleAttributeText(attribute);
  return std::string(kBegin) + attributes + "\n} {" + text.substr(line) + "\n";
}

absl::StatusOr<std::string> OpsText(mlir::ModuleOp module, const DumpRequest& request) {
  mlir::AsmState state(module.getOperation());
  std::string text;
  std::vector<std::string> functions;
  for (mlir::Operation& function : *module.getBody()) {
    const llvm::StringRef name = FunctionName(function);
    if (name.empty()) continue;
    functions.push_back(name.str());
    if (!request.function.empty() && name != request.function) continue;
    if (request.layer.empty()) {
      text += OpText(function, state) + "\n";
      continue;
    }
    std::string ops;
    function.walk([&](mlir::Operation* op) {
      const mlir::StringAttr layer = mlir::ft::getLayer(op);
      if (op != &function && layer && IsOfLayer(layer.getValue(), request.layer))
        ops += "  " + OpText(*op, state) + "\n";
    });
    if (!ops.empty()) text += fmt::format("// @{}\n{}", name.str(), ops);
  }
  if (text.empty()) return NothingMatches(request, functions);
  return text;
}

}  // namespace ftc
