// Elements of tensors from one type of floats to another.
#pragma once

#include <cstddef>

#include "runtime/base/dtype.h"

namespace ft {

// Whether ConvertElements takes it: F32, BF16, F16.
bool IsConvertible(DType dtype);

// `count` elements, none of which need be aligned, both types convertible: rounded to nearest, ties to even;
// those of one type keep their bits. Returns how many finite ones became infinite.
size_t ConvertElements(DType from, const std::byte* in, DType to, std::byte* out, size_t count);

}  // namespace ft
