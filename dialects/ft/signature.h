// The inputs and outputs of a model by name, as the attributes of @forward say it.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

#include <optional>

namespace mlir::ft {

// On arguments of @forward: the name of an input, and that it is the same for all examples; elements of its
// type in the place of the mere word are its value. Without any of them the two arguments are "tokens" and
// "targets".
inline constexpr llvm::StringLiteral kInputAttr = "ft.input";
inline constexpr llvm::StringLiteral kConstantAttr = "ft.constant";
// On results of @forward but the first, which is the loss: the name of a mean that evaluation reports.
inline constexpr llvm::StringLiteral kOutputAttr = "ft.output";
// Beside it, set by the compiler: the mean is over what the loss counts.
inline constexpr llvm::StringLiteral kCountedAttr = "ft.counted";
// On modules, set by the compiler: the inputs, an array of dictionaries.
inline constexpr llvm::StringLiteral kInputsAttr = "ft.inputs";

// On modules: the hash of the tokenizer that the tokens are of (runtime/checkpoint/tokenizer_hash.h).
inline constexpr llvm::StringLiteral kTokenizerAttr = "ft.tokenizer";

inline constexpr llvm::StringLiteral kTokensInput = "tokens";
inline constexpr llvm::StringLiteral kTargetsInput = "targets";
inline constexpr llvm::StringLiteral kInputIdsInput = "input_ids"; // tokens, as transformers call them

// Whether arguments have names of their own.
bool namesInputs(func::FuncOp function);
// The name of an argument; empty where it has none.
llvm::StringRef inputName(func::FuncOp function, unsigned argument);
// The argument of this name, or null.
BlockArgument findInput(func::FuncOp function, llvm::StringRef name);
// "tokens", or else "input_ids"; null where there are none.
BlockArgument findTokens(func::FuncOp function);
bool isConstantInput(func::FuncOp function, unsigned argument);
// The elements of a constant that the model says itself; null where data has them.
DenseElementsAttr valueOfInput(func::FuncOp function, unsigned argument);
// The name of a result; empty where it has none, as the loss.
llvm::StringRef outputName(func::FuncOp function, unsigned result);

// The examples of a batch: the first extent of the first input that is no constant; 0 when there is none.
int64_t batchOf(func::FuncOp function);
// The input that has sequences of tokens, these or "targets", [batch, sequence]; null when there is none.
BlockArgument sequenceInput(func::FuncOp function);

// What ids come from, through ops that move elements and make others of integers.
struct IdSources {
  llvm::SmallVector<BlockArgument> inputs;
  int64_t below = 0;       // what is no input is below this, or less than 0
  bool isComputed = false; // something else is among them
};
IdSources sourcesOfIds(Value ids);

// Whether ids are all of an input, as it stands, maybe of another shape or type.
bool isWholeInput(Value ids);

// Those of a cross entropy; null for other ops.
Value targetsOf(Operation *loss);

// The cross entropy that a loss is, maybe in another shape; null for other losses.
Operation *crossEntropyOf(Value loss);

// Whether a value is computed of another, or is that.
bool dependsOn(Value value, Value other);

// The targets that the loss is a mean over, where -1 leaves one out: those of the cross entropy that it is,
// when data says them; of other losses what all cross entropies take of input "targets", or all of that.
// Null: it is a mean over the batch.
Value countedTargets(func::FuncOp function);
// The input that they are taken from as they stand. Null where they are computed.
BlockArgument countedInput(func::FuncOp function);

// An input of a model, in kInputsAttr.
struct ModelInput {
  std::string name;
  RankedTensorType type;
  bool isConstant = false;
  DenseElementsAttr value;   // of a constant that the model says itself; null where data has it
  int64_t idsBelow = 0;      // what chooses among rows or classes; 0: any value
  bool mayBeLeftOut = false; // negative ids are targets that the loss leaves out
  bool isCounted = false;    // the loss is a mean over it
  bool isShifted = false;    // targets that the model moves by a token itself, as transformers' labels
};
void setInputs(ModuleOp module, llvm::ArrayRef<ModelInput> inputs);
// Nothing when the module does not say it, or not so.
std::optional<llvm::SmallVector<ModelInput>> inputsOf(ModuleOp module);

} // namespace mlir::ft
