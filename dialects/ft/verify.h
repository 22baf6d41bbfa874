// Checks that the verifiers of ops share. Each emits one error at the op, saying what is there and what is
// expected.
#pragma once

#include "dialects/ft/dialect.h"

namespace mlir::ft::verify {

inline RankedTensorType tensor(Value value) { return cast<RankedTensorType>(value.getType()); }
inline llvm::ArrayRef<int64_t> shape(Value value) { return tensor(value).getShape(); }

// `form` explains the dimensions: "[vocabulary, width]".
LogicalResult rank(Operation *op, llvm::StringRef name, Value value, int64_t rank, llvm::StringRef form);

// At least `rank` dimensions.
LogicalResult minRank(Operation *op, llvm::StringRef name, Value value, int64_t rank, llvm::StringRef form);

// `why` says where the expected shape comes from: "the last dimension of x".
LogicalResult shapeIs(Operation *op, llvm::StringRef name, Value value, llvm::ArrayRef<int64_t> expected,
                      const llvm::Twine &why);

// Shape and element type are those of `other`; an absent value passes.
LogicalResult sameType(Operation *op, llvm::StringRef name, Value value, llvm::StringRef otherName,
                       Value other);

LogicalResult sameElementType(Operation *op, llvm::StringRef name, Value value, llvm::StringRef otherName,
                              Value other);

// Of a cluster's scratch: one number for each kind of device.
LogicalResult partialBytes(Operation *op, llvm::ArrayRef<int64_t> bytes);

// Any shape, f32.
LogicalResult isF32(Operation *op, llvm::StringRef name, Value value);

// [width], width the last dimension of x, with the elements of x.
LogicalResult isColumns(Operation *op, llvm::StringRef name, Value value, Value x);

// What an op computes with: floats are f32 then, integers those of the type, up to what f64 counts. Neither
// infinite nor no number.
LogicalResult isHeldBy(Operation *op, llvm::StringRef name, double value, Type element);

LogicalResult notNegative(Operation *op, llvm::StringRef name, const llvm::APFloat &value);

// Logits of the bits of an index, [..., bits].
LogicalResult bits(Operation *op, Value logits);
// One target per row of `values`.
LogicalResult targets(Operation *op, llvm::StringRef name, Value values, Value targets);

// A probability of dropout.
LogicalResult dropoutRate(Operation *op, const llvm::APFloat &rate);

// x is [batch, positions, heads * head size], `angles` what ft.rotate turns it by.
LogicalResult rotation(Operation *op, Value x, Value angles, int64_t heads);

// The state of the generator of random numbers.
LogicalResult randomState(Operation *op, Value rng);

// The state of loss scaling.
LogicalResult scaler(Operation *op, Value value);

// The shape of `value` is a suffix of that of `other`.
LogicalResult suffixOf(Operation *op, llvm::StringRef name, Value value, llvm::StringRef otherName,
                       Value other);

} // namespace mlir::ft::verify
