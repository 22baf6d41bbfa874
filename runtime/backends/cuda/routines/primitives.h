// The elementwise primitives of runtime/base/elementwise.def, and convert. Every tensor is of a type of its
// own: f32, bf16 and f16 are computed with in f32 and each result is rounded once; i32, i64 and u8 in 64 bits
// that wrap around. Results may be the very buffers of operands of the same type and extent. All functions
// enqueue on `stream` and return a cudaError_t as int, 0 for success.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/routines/launch.h"
#include "runtime/base/dtype.h"
#include "runtime/base/elementwise.h"

namespace ft::cuda {

// Read at i % period, positive.
struct PrimitiveOperand {
  const void* data;
  int64_t period;
  DType dtype;
};

// r[i] = kind(in[0][i], in[1][i], in[2][i]; p, q). Operands that there are not are zero.
struct PrimitiveArgs {
  Elementwise kind;
  int count;  // of operands
  PrimitiveOperand in[kMaxElementwiseOperands];
  void* r;
  DType dtype;  // of r
  int64_t elements;
  double p, q;
};
// `of_floats`: all operands but the condition of select are floats; else none is.
int Primitive(const PrimitiveArgs& args, bool of_floats, StreamHandle stream);

// From floats to integers towards zero, with the type's ends for what is beyond them and 0 for NaN. To u8,
// truth values, whether x is not 0.
struct ConvertArgs {
  const void* x;
  void* r;
  int64_t elements;
  DType from, to;
};
int Convert(const ConvertArgs& args, StreamHandle stream);

}  // namespace ft::cuda
