// A family of models: its presets and its builder.
#pragma once

#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "models/base/config.h"

namespace ft::models {

// What a module says it is: of which family, and which of it.
struct ModelName {
  std::string model;
  std::string preset;
};

struct ModelSpec {
  std::string name;    // "llama"
  std::string summary; // one line
  std::vector<Preset> presets;
  std::vector<std::string> options; // of ftc model, besides --batch (models/base/options.h)

  // What `model_type` in a config.json stands for models that the family builds. Where a model of the type
  // can have several heads, the family is that whose presets have labels if and only if the model does.
  std::vector<std::string> modelTypes;

  // The facts that the builder reads. Of all others a model has those of the family's first preset.
  std::vector<::ft::FactMember> honours;

  // Dropout of attention's probabilities has the rate of --dropout, as that of embedding and residual stream.
  bool attentionDropout = false;

  // Sets what follows of a preset's sizes, once the user's changes are made. May be null.
  void (*complete)(ModelConfig &config) = nullptr;

  // Positions that sequences may have, where those are fewer than max_positions. May be null.
  int64_t (*positions)(const ModelConfig &config) = nullptr;

  // What this family alone demands of a config that passed the general checks: one line, or empty. May be
  // null.
  std::string (*check)(const ModelConfig &config) = nullptr;

  // Builds the forward graph of a checked config.
  mlir::OwningOpRef<mlir::ModuleOp> (*build)(mlir::MLIRContext &context, const ModelName &name,
                                             const ModelConfig &config) = nullptr;
};

// Facts that builders of all families read: sizes, eps, dropout.
std::vector<::ft::FactMember> withCommonFacts(std::vector<::ft::FactMember> more);

} // namespace ft::models
