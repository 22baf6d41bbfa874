// Names of the attributes that say what an op and a module belong to, and access to them.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace mlir::ft {

// On ops. `layer`: the layer an op belongs to, "transformer.h.3". `phase`: one of kPhaseForward, ..., set by
// the compiler.
inline constexpr llvm::StringLiteral kLayerAttr = "layer";
inline constexpr llvm::StringLiteral kPhaseAttr = "phase";
inline constexpr llvm::StringLiteral kPhaseForward = "forward";
inline constexpr llvm::StringLiteral kPhaseRecompute = "recompute";
inline constexpr llvm::StringLiteral kPhaseBackward = "backward";
inline constexpr llvm::StringLiteral kPhaseOptimizer = "optimizer";
// On ops of the forward phase: what becomes of their results until backward reads them, one of kRematKeep,
// ...
inline constexpr llvm::StringLiteral kRematAttr = "remat";
inline constexpr llvm::StringLiteral kRematKeep = "keep";
inline constexpr llvm::StringLiteral kRematRecompute = "recompute";
inline constexpr llvm::StringLiteral kRematOffload = "offload";

// On modules, made by the model builders. kBasePrefixAttr: the prefix of parameter names that checkpoints of
// the bare base model leave out ("transformer.").
inline constexpr llvm::StringLiteral kModelAttr = "ft.model";
inline constexpr llvm::StringLiteral kPresetAttr = "ft.preset";
inline constexpr llvm::StringLiteral kBatchAttr = "ft.batch";
inline constexpr llvm::StringLiteral kSeqLenAttr = "ft.seq_len";
inline constexpr llvm::StringLiteral kVocabSizeAttr = "ft.vocab_size";
inline constexpr llvm::StringLiteral kBasePrefixAttr = "ft.base_prefix";

// What became of activations: an array of dictionaries with value, layer, choice, bytes, flops
// (ft-record-saved).
inline constexpr llvm::StringLiteral kSavedAttr = "ft.saved";

// Names of functions and inputs that the compiler and the models agree on.
inline constexpr llvm::StringLiteral kForwardFunction = "forward";
inline constexpr llvm::StringLiteral kTrainStepFunction = "train_step";
inline constexpr llvm::StringLiteral kTrainMicroFunction = "train_micro";
inline constexpr llvm::StringLiteral kEvalStepFunction = "eval_step";
inline constexpr llvm::StringLiteral kSampleStepFunction = "sample_step";
inline constexpr llvm::StringLiteral kInitFunction = "init";
inline constexpr llvm::StringLiteral kRngInput = "rng";
inline constexpr llvm::StringLiteral kLrInput = "lr";
inline constexpr llvm::StringLiteral kStepInput = "step";
inline constexpr llvm::StringLiteral kScalerInput = "scaler";
inline constexpr llvm::StringLiteral kInverseRanksInput = "inverse_ranks"; // 1 / the number of ranks
inline constexpr llvm::StringLiteral kSamplePositionInput = "sample_position";

// Layer or phase of an op, null when it has none.
StringAttr getLayer(Operation *op);
StringAttr getPhase(Operation *op);
bool isInPhase(Operation *op, llvm::StringRef phase);

// A null `layer` or an empty `phase` removes the attribute.
void setLayer(Operation *op, StringAttr layer);
void setPhase(Operation *op, llvm::StringRef phase);

} // namespace mlir::ft
