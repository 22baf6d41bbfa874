// Models of transformers, from the facts that their config.json says.
#pragma once

#include <string>

#include "mlir/IR/BuiltinOps.h"
#include "models/base/options.h"
#include "llvm/Support/Error.h"

namespace ft::models {

// Builds the forward graph of the model that the facts are of; `preset` names it. `overrides` are those of
// applyShapes. Errors are one line for the user: a model_type that no family builds, a fact that the family's
// builder does not read and that is not the family's own, shapes that do not fit.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> importModel(mlir::MLIRContext &context,
                                                              const ::ft::ModelFacts &facts,
                                                              const std::string &preset,
                                                              const Overrides &overrides);

// One line with the model_types that are built.
void listModelTypes(llvm::raw_ostream &os);

} // namespace ft::models
