#include "runtime/executor/not_finite.h"

#include <algorithm>

#include "runtime/base/load_element.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

constexpr int64_t kPieceBytes = int64_t{4} << 20;
// Elements that are looked at together before they are looked at one by one.
constexpr int64_t kTogether = 4096;

// `infinity` is the number without its sign: larger ones are NaN.
template <typename Bits>
void Count(const void* data, Bits infinity, int64_t begin, int64_t n, NotFinite& numbers) {
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  const char* const elements = static_cast<const char*>(data);
  for (int64_t from = 0; from < n; from += kTogether) {
    const int64_t to = std::min(n, from + kTogether);
    Bits largest = 0;
    for (int64_t i = from; i < to; ++i)
      largest = std::max<Bits>(largest, static_cast<Bits>(LoadElement<Bits>(elements, i) & ~kSign));
    if (largest < infinity) continue;
    for (int64_t i = from; i < to; ++i) {
      const Bits bits = LoadElement<Bits>(elements, i), magnitude = static_cast<Bits>(bits & ~kSign);
      if (magnitude < infinity) continue;
      if (numbers.first < 0) numbers.first = begin + i;
      ++(magnitude > infinity ? numbers.nan : (bits & kSign) != 0 ? numbers.negative : numbers.positive);
    }
  }
}

}  // namespace

void CountNotFinite(const void* data, DType dtype, int64_t begin, int64_t n, NotFinite& numbers) {
  switch (dtype) {
    case DType::kF32:
      return Count<uint32_t>(data, 0x7F800000u, begin, n, numbers);
    case DType::kBF16:
      return Count<uint16_t>(data, 0x7F80u, begin, n, numbers);
    case DType::kF16:
      return Count<uint16_t>(data, 0x7C00u, begin, n, numbers);
    case DType::kF64:
      return Count<uint64_t>(data, 0x7FF0000000000000u, begin, n, numbers);
    case DType::kI32:
    case DType::kI64:
    case DType::kU8:
      return;
  }
}

absl::StatusOr<NotFinite> NotFiniteScan::Look(const Tensor& tensor, bool on_host) {
  NotFinite numbers;
  if (!tensor.present() || !HasFloats(tensor.dtype)) return numbers;
  const int64_t elements = tensor.elements();
  if (on_host || device_.host_accessible()) {
    CountNotFinite(tensor.data, tensor.dtype, 0, elements, numbers);
    return numbers;
  }
  const auto size = static_cast<int64_t>(SizeOf(tensor.dtype));
  if (piece_.empty()) piece_.resize(kPieceBytes);
  for (int64_t from = 0; from < elements; from += kPieceBytes / size) {
    const int64_t n = std::min(elements - from, kPieceBytes / size);
    FT_RETURN_IF_ERROR(
        device_.Read(piece_.data(), tensor.as<char>() + from * size, static_cast<uint64_t>(n * size)));
    CountNotFinite(piece_.data(), tensor.dtype, from, n, numbers);
  }
  return numbers;
}

}  // namespace ft
