#include "runtime/collective/tree_sum.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

// One body compiled for several generations of the processor, chosen when the program starts. All give the
// same bits: only additions (the build says -ffp-contract=off
// for this file).
// The choice is made before ThreadSanitizer is ready for the code that makes it: a build with it has one
// body.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define FT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FT_CLONES
#endif

namespace ft {
namespace {

// Elements summed at a time: a few such blocks of fp32 stay in the first-level cache.
constexpr size_t kBlock = 1024;

struct Bf16 {
  uint16_t bits;
};
using F16 = _Float16;

inline float Load(Bf16 value) { return std::bit_cast<float>(uint32_t{value.bits} << 16); }
inline float Load(F16 value) { return static_cast<float>(value); }
template <typename T>
inline T Load(T value) {
  return value;
}

inline void Store(float value, Bf16* out) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  // To nearest even; a NaN stays one (and quiet), though its payload is cut.
  const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t nan = (bits >> 16) | 0x40u;
  out->bits = static_cast<uint16_t>((bits & 0x7FFFFFFFu) > 0x7F800000u ? nan : rounded);
}
inline void Store(float value, F16* out) { *out = static_cast<F16>(value); }
template <typename T>
inline void Store(T value, T* out) {
  *out = value;
}

// Integers wrap: their sums are exact modulo 2^n in any order.
template <typename A>
inline A Plus(A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    return static_cast<A>(static_cast<std::make_unsigned_t<A>>(a) + static_cast<std::make_unsigned_t<A>>(b));
  } else {
    return a + b;
  }
}

// The loops, for one element type each: target_clones does not go with templates.
#define FT_KERNELS(Suffix, T, A)                                                                  \
  FT_CLONES void Load1##Suffix(const T* a, size_t n, A* out) {                                    \
    for (size_t i = 0; i < n; ++i) out[i] = Load(a[i]);                                           \
  }                                                                                               \
  FT_CLONES void Add2##Suffix(const T* a, const T* b, size_t n, A* out) {                         \
    for (size_t i = 0; i < n; ++i) out[i] = Plus<A>(Load(a[i]), Load(b[i]));                      \
  }                                                                                               \
  FT_CLONES void Add4##Suffix(const T* a, const T* b, const T* c, const T* d, size_t n, A* out) { \
    for (size_t i = 0; i < n; ++i) {                                                              \
      out[i] = Plus<A>(Plus<A>(Load(a[i]), Load(b[i])), Plus<A>(Load(c[i]), Load(d[i])));         \
    }                                                                                             \
  }                                                                                               \
  FT_CLONES void AddTo##Suffix(const A* a, size_t n, A* out) {                                    \
    for (size_t i = 0; i < n; ++i) out[i] = Plus<A>(out[i], a[i]);                                \
  }                                                                                               \
  FT_CLONES void Finish##Suffix(const A* a, size_t n, T* out) {                                   \
    for (size_t i = 0; i < n; ++i) Store(a[i], &out[i]);                                          \
  }                                                                                               \
  struct Kernels##Suffix {                                                                        \
    using Element = T;                                                                            \
    using Accumulator = A;                                                                        \
    static constexpr auto kLoad1 = Load1##Suffix;                                                 \
    static constexpr auto kAdd2 = Add2##Suffix;                                                   \
    static constexpr auto kAdd4 = Add4##Suffix;                                                   \
    static constexpr auto kAddTo = AddTo##Suffix;                                                 \
    static constexpr auto kFinish = Finish##Suffix;                                               \
  };

FT_KERNELS(F32, float, float)
FT_KERNELS(F64, double, double)
FT_KERNELS(Bf16, Bf16, float)
FT_KERNELS(F16, F16, float)
FT_KERNELS(I32, int32_t, int32_t)
FT_KERNELS(I64, int64_t, int64_t)
#undef FT_KERNELS

// out = tree sum of parts[i][offset, offset + n), n <= kBlock.
template <typename K>
void SumBlock(absl::Span<const void* const> parts, size_t offset, size_t n, typename K::Accumulator* out) {
  const auto part = [&](size_t i) { return static_cast<const typename K::Element*>(parts[i]) + offset; };
  switch (parts.size()) {
    case 1:
      return K::kLoad1(part(0), n, out);
    case 2:
      return K::kAdd2(part(0), part(1), n, out);
    case 4:
      return K::kAdd4(part(0), part(1), part(2), part(3), n, out);
    default: {
      const size_t split = std::bit_floor(parts.size() - 1);
      alignas(64) typename K::Accumulator rest[kBlock];
      SumBlock<K>(parts.subspan(0, split), offset, n, out);
      SumBlock<K>(parts.subspan(split), offset, n, rest);
      K::kAddTo(rest, n, out);
    }
  }
}

template <typename K>
void Sum(absl::Span<const void* const> parts, size_t count, void* out) {
  alignas(64) typename K::Accumulator sum[kBlock];
  for (size_t offset = 0; offset < count; offset += kBlock) {
    const size_t n = std::min(kBlock, count - offset);
    SumBlock<K>(parts, offset, n, sum);
    K::kFinish(sum, n, static_cast<typename K::Element*>(out) + offset);
  }
}

}  // namespace

void TreeSum(absl::Span<const void* const> parts, size_t count, DType dtype, void* out) {
  switch (dtype) {
    case DType::kF32:
      return Sum<KernelsF32>(parts, count, out);
    case DType::kF64:
      return Sum<KernelsF64>(parts, count, out);
    case DType::kBF16:
      return Sum<KernelsBf16>(parts, count, out);
    case DType::kF16:
      return Sum<KernelsF16>(parts, count, out);
    case DType::kI32:
      return Sum<KernelsI32>(parts, count, out);
    case DType::kI64:
      return Sum<KernelsI64>(parts, count, out);
    case DType::kU8:
      break;  // CheckReduction refused it
  }
}

absl::Status CheckReductions(absl::Span<const ReducePart> parts, const CollectiveLabel& label) {
  for (const ReducePart& part : parts) {
    if (part.dtype == DType::kU8)
      return absl::InvalidArgumentError(absl::StrCat(label.name, ": there is no sum over ranks of u8"));
  }
  return absl::OkStatus();
}

}  // namespace ft
