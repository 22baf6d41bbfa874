// The models that `ftc model` knows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/base/model_spec.h"
#include "models/base/options.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace ft::models {

// All families, in the order in which they are listed.
const std::vector<ModelSpec> &allModels();

// A preset of a family with the user's changes, checked.
struct ResolvedModel {
  const ModelSpec *spec = nullptr;
  std::string preset;
  ModelConfig config;
};

// `name` is a family ("llama") or a preset's full name ("llama3-70b"). An empty `preset` means "debug" for a
// family. Errors are one line for the user: an unknown name or preset (with what was probably meant),
// dimensions that do not fit.
llvm::Expected<ResolvedModel> resolveModel(const std::string &name, const std::string &preset,
                                           const Overrides &overrides);

// Resolves and builds. The context gets the dialects that are needed.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> buildModel(mlir::MLIRContext &context,
                                                             const std::string &name,
                                                             const std::string &preset,
                                                             const Overrides &overrides);

// Elements of all parameters of a module.
int64_t countParameters(mlir::ModuleOp module);

// The module as text, values under the names that the builders gave them (%tokens, %q, %logits).
void printModel(mlir::ModuleOp module, llvm::raw_ostream &os);

// A table of all families and presets with their dimensions.
void listModels(llvm::raw_ostream &os);

} // namespace ft::models
