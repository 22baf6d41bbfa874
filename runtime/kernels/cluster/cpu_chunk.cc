#include "runtime/kernels/cluster/cpu_chunk.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ft::cpu {
namespace {

template <typename T>
void Widen(const void* from, int64_t begin, int64_t n, int64_t* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<int64_t>(static_cast<const T*>(from)[begin + i]);
}
template <typename T>
void Narrow(const int64_t* from, int64_t n, void* to, int64_t begin) {
  for (int64_t i = 0; i < n; ++i) static_cast<T*>(to)[begin + i] = static_cast<T>(from[i]);
}

template <typename T>
int64_t Truncated(float value) {
  if (std::isnan(value)) return 0;
  constexpr float kEnd =
      -static_cast<float>(std::numeric_limits<T>::min());  // 2^31 or 2^63, one above the largest
  if (value >= kEnd) return std::numeric_limits<T>::max();
  return value <= -kEnd ? std::numeric_limits<T>::min() : static_cast<int64_t>(value);
}

int64_t ToInteger(float value, DType dtype) {
  if (dtype == DType::kU8) return value != 0 ? 1 : 0;
  return dtype == DType::kI32 ? Truncated<int32_t>(value) : Truncated<int64_t>(value);
}

int64_t ToInteger(int64_t value, DType dtype) {
  return dtype == DType::kU8 ? static_cast<int64_t>(value != 0) : value;
}

}  // namespace

void ChunkMover::Read(const void* from, DType dtype, int64_t begin, int64_t n, void* chunk,
                      int64_t at) const {
  if (IsFloat(dtype))
    return convert.to_float[FloatIndex(dtype)](from, begin, n, static_cast<float*>(chunk) + at);
  int64_t* to = static_cast<int64_t*>(chunk) + at;
  if (dtype == DType::kI32) return Widen<int32_t>(from, begin, n, to);
  if (dtype == DType::kI64) return Widen<int64_t>(from, begin, n, to);
  Widen<uint8_t>(from, begin, n, to);
}

void ChunkMover::Write(const void* chunk, int64_t n, void* to, DType dtype, int64_t begin) const {
  if (IsFloat(dtype))
    return convert.from_float[FloatIndex(dtype)](static_cast<const float*>(chunk), to, begin, n);
  const auto* from = static_cast<const int64_t*>(chunk);
  if (dtype == DType::kI32) return Narrow<int32_t>(from, n, to, begin);
  if (dtype == DType::kI64) return Narrow<int64_t>(from, n, to, begin);
  Narrow<uint8_t>(from, n, to, begin);
}

void Spread(DType dtype, int64_t n, void* chunk) {
  if (IsFloat(dtype)) {
    auto* floats = static_cast<float*>(chunk);
    std::fill_n(floats, n, floats[0]);
  } else {
    auto* integers = static_cast<int64_t*>(chunk);
    std::fill_n(integers, n, integers[0]);
  }
}

void ConvertChunk(const void* chunk, DType from, void* converted, DType to, int64_t n) {
  const auto* floats = static_cast<const float*>(chunk);
  const auto* integers = static_cast<const int64_t*>(chunk);
  if (IsFloat(to)) {
    auto* result = static_cast<float*>(converted);
    for (int64_t i = 0; i < n; ++i) result[i] = IsFloat(from) ? floats[i] : static_cast<float>(integers[i]);
    return;
  }
  auto* result = static_cast<int64_t*>(converted);
  for (int64_t i = 0; i < n; ++i)
    result[i] = IsFloat(from) ? ToInteger(floats[i], to) : ToInteger(integers[i], to);
}

}  // namespace ft::cpu
