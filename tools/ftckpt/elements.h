// Elements of tensors as numbers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/dtype.h"
#include "runtime/checkpoint/safetensors_dtype.h"

namespace ft::ckpt {

// out[i] = element i of `in`: exact but for 64-bit integers beyond 2^53. `in` need not be aligned.
void Widen(SafetensorsDType dtype, const std::byte* in, size_t count, double* out);

// Whether Convert takes it: F32, BF16, F16.
bool IsConvertible(DType dtype);

// `count` elements from one type to another, both convertible, rounded to nearest, ties to even, as a run
// that loads them does. Returns how many finite ones became infinite.
size_t Convert(DType from, const std::byte* in, DType to, std::byte* out, size_t count);

}  // namespace ft::ckpt
