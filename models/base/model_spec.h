// A family of models: its presets and its builder.
#pragma once

#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "models/base/config.h"

namespace ft::models {

struct ModelSpec {
  std::string name;    // "llama"
  std::string summary; // one line
  std::vector<Preset> presets;
  std::vector<std::string> options; // of ftc model, besides --batch (models/base/options.h)

  // What this family alone demands of a config that passed the general checks: one line, or empty. May be
  // null.
  std::string (*check)(const ModelConfig &config);

  // Builds the forward graph of a checked config.
  mlir::OwningOpRef<mlir::ModuleOp> (*build)(mlir::MLIRContext &context, const std::string &preset,
                                             const ModelConfig &config);
};

} // namespace ft::models
