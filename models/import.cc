#include "models/import.h"

#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "models/base/user_error.h"
#include "models/registry.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

namespace ft::models {
namespace {

// That of the model's type and of its head.
const ModelSpec *builderOf(const ::ft::ModelFacts &facts) {
  for (const ModelSpec &spec : allModels()) {
    bool classifies = spec.presets.front().config.num_labels > 0;
    if (llvm::is_contained(spec.modelTypes, facts.model_type) && classifies == (facts.num_labels > 0))
      return &spec;
  }
  return nullptr;
}

// What the builder does not read must be as it is in every model of the family.
std::string findUnread(const ModelSpec &spec, const ::ft::ModelFacts &facts) {
  const ModelConfig &usual = spec.presets.front().config;
  for (const ::ft::FactField &field : ::ft::FactFields()) {
    if (llvm::is_contained(spec.honours, field.member))
      continue;
    ::ft::FactValue value = ::ft::GetFact(facts, field), own = ::ft::GetFact(usual, field);
    if (value != own)
      return llvm::formatv("{0} is {1}, but the {2}s that are built have {3}", field.name,
                           ::ft::FactText(value), facts.model_type, ::ft::FactText(own));
  }
  return "";
}

} // namespace

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> importModel(mlir::MLIRContext &context,
                                                              const ::ft::ModelFacts &facts,
                                                              const std::string &preset,
                                                              const Overrides &overrides) {
  const ModelSpec *spec = builderOf(facts);
  if (!spec)
    return userError("models of type " + facts.model_type + (facts.num_labels > 0 ? " with labels" : "") +
                     " are not built");
  if (std::string unread = findUnread(*spec, facts); !unread.empty())
    return userError(unread);
  for (const auto &[option, value] : overrides)
    if (!takesOption(*spec, option))
      return userError("--" + option + " is no option of a " + facts.model_type);
  ModelConfig config;
  static_cast<::ft::ModelFacts &>(config) = facts;
  if (std::string error = applyShapes(*spec, overrides, config); !error.empty())
    return userError(error);
  context.loadDialect<mlir::ft::FtDialect, mlir::func::FuncDialect>();
  return spec->build(context, {facts.model_type, preset}, config);
}

void listModelTypes(llvm::raw_ostream &os) {
  os << "ftc import builds the model_types";
  llvm::ListSeparator comma(",");
  llvm::StringSet<> seen;
  for (const ModelSpec &spec : allModels())
    for (const std::string &type : spec.modelTypes)
      if (seen.insert(type).second)
        os << llvm::StringRef(comma) << " " << type;
  os << "\n";
}

} // namespace ft::models
