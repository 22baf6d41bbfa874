// What tests of all kinds of code run: the bodies of bodies.h, with numbers and tolerances.
#pragma once

#include "compiler/codegen/testing/bodies.h"
#include "compiler/codegen/testing/code_test.h"

namespace ft::compiler::testing {

struct BodyCase {
  const char *name;
  const char *text;
  // Ulps of a result's type at the size of the result, and ulps of the largest one (differences of numbers
  // that are alike lose digits).
  double ulps, ofLargest;
};

// In $T inside means that a value may be rounded to its other neighbour on each of some ways.
inline constexpr BodyCase kBodies[] = {
    {"layer_norm", kLayerNorm, 4, 8},   {"rms_norm", kRmsNorm, 6, 0}, {"rms_norm_grad", kRmsNormGrad, 4, 8},
    {"column_sums", kColumnSums, 4, 8}, {"gelu", kGelu, 3, 2},        {"softmax", kSoftmax, 8, 0},
    {"swiglu", kSwiglu, 5, 0},          {"adamw", kAdamW, 4, 2},      {"types", kTypes, 0, 0},
    {"random", kRandom, 0, 0},          {"picked", kPicked, 8, 2},    {"bounded", kBounded, 8, 2},
    {"sums_begun", kSumsBegun, 4, 8},
};

/// Of the elements of a body in a shape, by their numbers: every body and every shape has all of them.
inline const char *elementOf(size_t body, size_t shape) {
  constexpr const char *kElements[] = {"f32", "bf16", "f16"};
  return kElements[(body + shape) % std::size(kElements)];
}

std::vector<HostTensor> inputsOf(mlir::func::FuncOp body, const BodyCase &bodyCase);

/// Within the tolerance of the case.
void compare(const HostTensor &got, const HostTensor &expected, const BodyCase &bodyCase);

/// What only moves elements, or makes them from nothing, is a matter of the reference.
bool isMoved(mlir::Operation *op);

/// The op as a body of its own, a func.func "alone".
mlir::OwningOpRef<mlir::ModuleOp> alone(mlir::Operation *op);

} // namespace ft::compiler::testing
