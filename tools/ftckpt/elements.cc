#include "tools/ftckpt/elements.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/base/round_float.h"

namespace ft::ckpt {
namespace {

template <typename T>
T LoadAs(const std::byte* in, size_t i) {
  T value;
  std::memcpy(&value, in + i * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void WidenAs(const std::byte* in, size_t count, double* out) {
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<double>(LoadAs<T>(in, i));
}

// Four bits of exponent with a bias of 7, three of fraction; no infinities, one NaN of each sign.
double F8E4M3ToDouble(uint8_t bits) {
  const int exponent = bits >> 3 & 0xF, fraction = bits & 7;
  if ((bits & 0x7F) == 0x7F) return std::numeric_limits<double>::quiet_NaN();
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

template <typename Bits, typename ToNumber>
void WidenBits(const std::byte* in, size_t count, double* out, ToNumber to_number) {
  for (size_t i = 0; i < count; ++i) out[i] = to_number(LoadAs<Bits>(in, i));
}

}  // namespace

void Widen(SafetensorsDType dtype, const std::byte* in, size_t count, double* out) {
  switch (dtype) {
    case SafetensorsDType::kBool:
    case SafetensorsDType::kU8:
      return WidenAs<uint8_t>(in, count, out);
    case SafetensorsDType::kI8:
      return WidenAs<int8_t>(in, count, out);
    case SafetensorsDType::kF8E5M2:  // the upper half of a binary16
      return WidenBits<uint8_t>(in, count, out, [](uint8_t b) {
        return static_cast<double>(F16ToFloat(static_cast<uint16_t>(b << 8)));
      });
    case SafetensorsDType::kF8E4M3:
      return WidenBits<uint8_t>(in, count, out, F8E4M3ToDouble);
    case SafetensorsDType::kI16:
      return WidenAs<int16_t>(in, count, out);
    case SafetensorsDType::kU16:
      return WidenAs<uint16_t>(in, count, out);
    case SafetensorsDType::kF16:
      return WidenBits<uint16_t>(in, count, out, F16ToFloat);
    case SafetensorsDType::kBF16:
      return WidenBits<uint16_t>(in, count, out, BF16ToFloat);
    case SafetensorsDType::kI32:
      return WidenAs<int32_t>(in, count, out);
    case SafetensorsDType::kU32:
      return WidenAs<uint32_t>(in, count, out);
    case SafetensorsDType::kF32:
      return WidenAs<float>(in, count, out);
    case SafetensorsDType::kF64:
      return WidenAs<double>(in, count, out);
    case SafetensorsDType::kI64:
      return WidenAs<int64_t>(in, count, out);
    case SafetensorsDType::kU64:
      return WidenAs<uint64_t>(in, count, out);
  }
}

}  // namespace ft::ckpt
