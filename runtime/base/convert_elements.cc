#include "runtime/base/convert_elements.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#include "runtime/base/load_element.h"
#include "runtime/base/round_float.h"

namespace ft {
namespace {

float ElementAsFloat(DType dtype, const std::byte* in, size_t i) {
  if (dtype == DType::kF32) return LoadElement<float>(in, static_cast<int64_t>(i));
  const auto bits = LoadElement<uint16_t>(in, static_cast<int64_t>(i));
  return dtype == DType::kBF16 ? BF16ToFloat(bits) : F16ToFloat(bits);
}

}  // namespace

bool IsConvertible(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
}

size_t ConvertElements(DType from, const std::byte* in, DType to, std::byte* out, size_t count) {
  if (from == to) {
    std::memcpy(out, in, count * SizeOf(from));
    return 0;
  }
  size_t overflowed = 0;
  for (size_t i = 0; i < count; ++i) {
    const float value = ElementAsFloat(from, in, i);
    if (to == DType::kF32) {
      std::memcpy(out + i * sizeof(value), &value, sizeof(value));
      continue;
    }
    const uint16_t rounded = to == DType::kBF16 ? RoundToBF16(value) : RoundToF16(value);
    const float back = to == DType::kBF16 ? BF16ToFloat(rounded) : F16ToFloat(rounded);
    overflowed += std::isfinite(value) && std::isinf(back) ? 1 : 0;
    std::memcpy(out + i * sizeof(rounded), &rounded, sizeof(rounded));
  }
  return overflowed;
}

}  // namespace ft
