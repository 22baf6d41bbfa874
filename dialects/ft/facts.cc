#include "dialects/ft/facts.h"

#include "dialects/ft/dialect.h"

namespace mlir::ft {
namespace {

using ::ft::FactField;
using ::ft::FactValue;
using ::ft::ModelFacts;

Attribute toAttr(Builder &builder, const FactValue &value) {
  if (const auto *text = std::get_if<std::string>(&value))
    return builder.getStringAttr(*text);
  if (const auto *flag = std::get_if<bool>(&value))
    return builder.getBoolAttr(*flag);
  if (const auto *number = std::get_if<int64_t>(&value))
    return builder.getI64IntegerAttr(*number);
  if (const auto *real = std::get_if<double>(&value))
    return builder.getF64FloatAttr(*real);
  if (const auto *list = std::get_if<std::vector<int64_t>>(&value))
    return builder.getDenseI64ArrayAttr(*list);
  return builder.getDenseF64ArrayAttr(std::get<std::vector<double>>(value));
}

// Nothing for an attribute of a type that no fact has.
std::optional<FactValue> fromAttr(Attribute attr) {
  if (auto text = dyn_cast<StringAttr>(attr))
    return FactValue(text.getValue().str());
  if (auto flag = dyn_cast<BoolAttr>(attr))
    return FactValue(flag.getValue());
  if (auto number = dyn_cast<IntegerAttr>(attr); number && number.getType().isInteger(64))
    return FactValue(number.getInt());
  if (auto real = dyn_cast<FloatAttr>(attr); real && real.getType().isF64())
    return FactValue(real.getValueAsDouble());
  if (auto list = dyn_cast<DenseI64ArrayAttr>(attr))
    return FactValue(std::vector<int64_t>(list.asArrayRef()));
  if (auto list = dyn_cast<DenseF64ArrayAttr>(attr))
    return FactValue(std::vector<double>(list.asArrayRef()));
  return std::nullopt;
}

llvm::StringRef typeName(const FactField &field) {
  constexpr llvm::StringLiteral names[] = {"a string", "true or false", "an i64",
                                           "an f64",   "array<i64>",    "array<f64>"};
  return names[field.member.index()];
}

} // namespace

DictionaryAttr factsToAttr(MLIRContext *context, const ModelFacts &facts) {
  Builder builder(context);
  NamedAttrList list;
  for (const FactField &field : ::ft::FactFields()) {
    FactValue value = ::ft::GetFact(facts, field);
    if (!::ft::IsNeutral(field, value))
      list.append(field.name, toAttr(builder, value));
  }
  return list.getDictionary(context);
}

FailureOr<ModelFacts> factsFromAttr(llvm::function_ref<InFlightDiagnostic()> emitError, Attribute attr) {
  auto dictionary = dyn_cast<DictionaryAttr>(attr);
  if (!dictionary)
    return emitError() << "'" << kFactsAttr << "' is " << attr << "; expected {fact = value, ...}";
  ModelFacts facts;
  for (NamedAttribute named : dictionary) {
    const FactField *field = ::ft::FindFact(named.getName().strref());
    if (!field)
      return emitError() << "'" << kFactsAttr << "' has " << named.getName()
                         << ", which is no fact of a model";
    std::optional<FactValue> value = fromAttr(named.getValue());
    if (!value || !::ft::SetFact(facts, *field, *value))
      return emitError() << "'" << kFactsAttr << "': " << named.getName() << " is " << named.getValue()
                         << "; expected " << typeName(*field);
  }
  if (std::string error = ::ft::CheckFacts(facts); !error.empty())
    return emitError() << "'" << kFactsAttr << "': " << error;
  return facts;
}

FailureOr<std::optional<ModelFacts>> factsOf(ModuleOp module) {
  Attribute attr = module->getAttr(kFactsAttr);
  if (!attr)
    return std::optional<ModelFacts>();
  FailureOr<ModelFacts> facts = factsFromAttr([&] { return module.emitError(); }, attr);
  if (failed(facts))
    return failure();
  return std::optional(*facts);
}

} // namespace mlir::ft
