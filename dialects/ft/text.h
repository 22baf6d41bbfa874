// Text of the dialect: real numbers as they are printed, and names for messages.
#pragma once

#include <string>

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/ArrayRef.h"

namespace mlir::ft {

// Writes the shortest text that MLIR's parser reads back as exactly this value: 0.02, 1.0, 1.0e-05.
// Infinities and NaN, which have no decimal text, are written in hexadecimal.
void printReal(llvm::raw_ostream &os, double value);

// Reads what printReal writes.
FailureOr<FloatAttr> parseReal(AsmParser &parser);

// The directive custom<Real> of ops.td: a 64-bit float attribute without its type.
ParseResult parseReal(OpAsmParser &parser, FloatAttr &value);
void printReal(OpAsmPrinter &printer, Operation *op, FloatAttr value);

// The directive custom<Rounding> of ops.td: the type of an operand and, where it differs, that of the result:
// "tensor<4xf32> -> tensor<4xbf16>".
ParseResult parseRounding(OpAsmParser &parser, Type &from, Type &to);
void printRounding(OpAsmPrinter &printer, Operation *op, Type from, Type to);

// "4x64x768", "scalar" for rank 0, the type itself when it is no ranked tensor.
std::string shapeText(Type type);
std::string shapeText(llvm::ArrayRef<int64_t> shape);

// The candidate nearest to `name`, empty when none is near: runtime/base/did_you_mean.h in LLVM's types.
llvm::StringRef nearestName(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> candidates);

} // namespace mlir::ft
