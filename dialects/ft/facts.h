// The facts of a model as an attribute of its module.
#pragma once

#include <optional>

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/base/model_facts.h"

namespace mlir::ft {

// `ft.facts = {model_type = "llama", hidden_size = 64 : i64, norm_eps = 1.0e-5 : f64, ...}`: what
// runtime/base/model_facts.h lists, under the same names. Numbers are i64, real ones f64, lists array<i64:
// ...> or array<f64: ...>. Neutral values are left out. Verified with the model, at the start of every
// compilation.
inline constexpr llvm::StringLiteral kFactsAttr = "ft.facts";

DictionaryAttr factsToAttr(MLIRContext *context, const ::ft::ModelFacts &facts);

// Reports an unknown fact, one of another type, and whatever CheckFacts finds.
FailureOr<::ft::ModelFacts> factsFromAttr(llvm::function_ref<InFlightDiagnostic()> emitError, Attribute attr);

// Those of a module; nothing when it has none. Reports what factsFromAttr does.
FailureOr<std::optional<::ft::ModelFacts>> factsOf(ModuleOp module);

} // namespace mlir::ft
