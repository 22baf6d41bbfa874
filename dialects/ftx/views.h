// Operands of instructions: views of buffers.
#pragma once

#include "dialects/ftx/dialect.h"
#include "llvm/ADT/DenseMap.h"

#include <utility>

namespace mlir::ftx {

/// A tensor inside a buffer.
struct View {
  Value buffer;       // !ftx.buffer; null for an optional operand that is absent
  int64_t offset = 0; // bytes
  Type type;          // tensor type; element type when the view is the whole buffer; none when absent
  bool own = false;   // this rank's slice of a whole; type is the element type

  bool isPresent() const { return static_cast<bool>(buffer); }
  bool isOwn() const { return isPresent() && own; }
  bool isWhole() const { return isPresent() && !own && !isa<RankedTensorType>(type); }
};

/// Puts operands and view attributes together; `views` has one entry per view, `buffers` one per present
/// view.
SmallVector<View> getViews(OperandRange buffers, ArrayAttr views);

/// Buffers of the present views, and the attribute for all of them.
SmallVector<Value> buffersOf(ArrayRef<View> views);
ArrayAttr attributeOf(MLIRContext *context, ArrayRef<View> views);

/// True for ops that become an instruction of the plan: kernel, launch, start, wait, release.
bool isInstruction(Operation *op);

/// Buffers that an instruction reads or writes, its workspace included. A wait touches none.
void forEachAccess(Operation *op, function_ref<void(Value buffer, bool writes)> visit);

/// The numbers of the first and the last instruction of a program that needs a buffer, of those that are
/// touched. What runs beside `compute` needs its buffers until it is waited for.
llvm::DenseMap<Value, std::pair<uint32_t, uint32_t>> liveRangesOf(ProgramOp program);

/// True when both touch a common buffer and at least one of them writes it.
bool conflict(Operation *a, Operation *b);

} // namespace mlir::ftx
