// Elements of tensors as numbers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/checkpoint/safetensors_dtype.h"

namespace ft::ckpt {

// out[i] = element i of `in`: exact but for 64-bit integers beyond 2^53. `in` need not be aligned.
void Widen(SafetensorsDType dtype, const std::byte* in, size_t count, double* out);

}  // namespace ft::ckpt
