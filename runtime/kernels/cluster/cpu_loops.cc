#include "runtime/kernels/cluster/cpu_loops.h"

#include "runtime/backends/cpu/simd/vector_math.h"

namespace ft::cpu::FT_ISA {

// The letters and functions of the table for single elements. Whatever is not a float is one of these.
namespace element {

// 64 bits that wrap around.
struct Integer {
  int64_t value;
};
FT_INLINE Integer Wrapped(uint64_t bits) { return {static_cast<int64_t>(bits)}; }
FT_INLINE uint64_t Bits(Integer a) { return static_cast<uint64_t>(a.value); }
FT_INLINE Integer operator+(Integer a, Integer b) { return Wrapped(Bits(a) + Bits(b)); }
FT_INLINE Integer operator-(Integer a, Integer b) { return Wrapped(Bits(a) - Bits(b)); }
FT_INLINE Integer operator*(Integer a, Integer b) { return Wrapped(Bits(a) * Bits(b)); }
FT_INLINE Integer operator-(Integer a) { return Wrapped(0 - Bits(a)); }
// Rounded down; b is positive.
FT_INLINE Integer operator/(Integer a, Integer b) {
  return {a.value / b.value - static_cast<int64_t>(a.value % b.value < 0)};
}
FT_INLINE bool operator==(Integer a, Integer b) { return a.value == b.value; }
FT_INLINE bool operator!=(Integer a, Integer b) { return a.value != b.value; }
FT_INLINE bool operator<(Integer a, Integer b) { return a.value < b.value; }
FT_INLINE bool operator<=(Integer a, Integer b) { return a.value <= b.value; }
FT_INLINE bool operator>(Integer a, Integer b) { return a.value > b.value; }
FT_INLINE bool operator>=(Integer a, Integer b) { return a.value >= b.value; }
FT_INLINE bool IsNan(Integer) { return false; }
FT_INLINE Integer Floor(Integer a) { return a; }
FT_INLINE Integer Abs(Integer a) { return a.value < 0 ? -a : a; }
FT_INLINE Integer Sign(Integer a) { return {(a.value > 0) - (a.value < 0)}; }

template <typename T>
FT_INLINE T Select(bool condition, T a, T b) {
  return condition ? a : b;
}

FT_INLINE bool IsNan(float a) { return a != a; }
FT_INLINE float Abs(float a) { return __builtin_fabsf(a); }
FT_INLINE float Sign(float a) { return a > 0 ? 1.0f : a < 0 ? -1.0f : a; }
FT_INLINE float Sqrt(float a) { return __builtin_sqrtf(a); }
FT_INLINE float Exp(float a) { return FT_ISA::Exp(a); }
FT_INLINE float Sigmoid(float a) { return FT_ISA::Sigmoid(a); }
FT_INLINE float NormalCdf(float a) { return FT_ISA::NormalCdf(a); }
FT_INLINE float Log(float a) { return LogOfAny(a); }
FT_INLINE float Tanh(float a) { return FT_ISA::Tanh(a); }
FT_INLINE float Erf(float a) { return FT_ISA::Erf(a); }
FT_INLINE float Sin(float a) { return FT_ISA::Sin(a); }
FT_INLINE float Cos(float a) { return FT_ISA::Cos(a); }
FT_INLINE float Pow(float a, double exponent) { return FT_ISA::Pow(a, exponent); }
FT_INLINE float Floor(float a) { return __builtin_floorf(a); }

// Constants of rows, in the type of their operands.
template <typename T>
struct Constant {
  inline __attribute__((always_inline)) T operator()(double number) const { return {static_cast<T>(number)}; }
};
template <>
struct Constant<Integer> {
  inline __attribute__((always_inline)) Integer operator()(double number) const {
    return {static_cast<int64_t>(number)};
  }
};

#define FT_ELEMENTWISE(Name, mnemonic, domain, operands, parameters, value, gradients, summary)           \
  struct Name##Row {                                                                                      \
    template <typename A, typename T>                                                                     \
    static inline __attribute__((always_inline)) auto Of([[maybe_unused]] A a, [[maybe_unused]] T b,      \
                                                         [[maybe_unused]] T c, [[maybe_unused]] double p, \
                                                         [[maybe_unused]] double q) {                     \
      [[maybe_unused]] constexpr Constant<T> K;                                                           \
      return value;                                                                                       \
    }                                                                                                     \
  };
#include "runtime/base/elementwise.def"
#undef FT_ELEMENTWISE

}  // namespace element

namespace {

using element::Integer;

FT_INLINE float Put(float value) { return value; }
FT_INLINE int64_t Put(Integer value) { return value.value; }
FT_INLINE int64_t Put(bool value) { return value ? 1 : 0; }

template <typename T>
struct Stored {
  using Type = int64_t;
  static inline __attribute__((always_inline)) T Get(int64_t value) { return {value}; }
};
template <>
struct Stored<float> {
  using Type = float;
  static inline __attribute__((always_inline)) float Get(float value) { return value; }
};
template <>
struct Stored<bool> {
  using Type = int64_t;
  static inline __attribute__((always_inline)) bool Get(int64_t value) { return value != 0; }
};

// Operand a has type A, the others T; result Type R.
template <typename Row, typename A, typename T, typename R>
void Loop(const void* const* in, void* result, const double* parameters, int64_t n) {
  const auto* a = static_cast<const typename Stored<A>::Type*>(in[0]);
  const auto* b = static_cast<const typename Stored<T>::Type*>(in[1]);
  const auto* c = static_cast<const typename Stored<T>::Type*>(in[2]);
  auto* r = static_cast<typename Stored<R>::Type*>(result);
  const double p = parameters[0], q = parameters[1];
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    r[i] = Put(
        R(Row::template Of<A, T>(Stored<A>::Get(a[i]), Stored<T>::Get(b[i]), Stored<T>::Get(c[i]), p, q)));
  }
}

template <typename Row, ElementwiseDomain kDomain>
constexpr ChunkFunction OfFloats() {
  using enum ElementwiseDomain;
  if constexpr (kDomain == kFloat || kDomain == kNumber) return &Loop<Row, float, float, float>;
  if constexpr (kDomain == kCompare) return &Loop<Row, float, float, bool>;
  if constexpr (kDomain == kSelect) return &Loop<Row, bool, float, float>;
  return nullptr;
}

template <typename Row, ElementwiseDomain kDomain>
constexpr ChunkFunction OfIntegers() {
  using enum ElementwiseDomain;
  if constexpr (kDomain == kInteger || kDomain == kNumber) return &Loop<Row, Integer, Integer, Integer>;
  if constexpr (kDomain == kCompare) return &Loop<Row, Integer, Integer, bool>;
  if constexpr (kDomain == kLogic) return &Loop<Row, bool, bool, bool>;
  if constexpr (kDomain == kSelect) return &Loop<Row, bool, Integer, Integer>;
  return nullptr;
}

}  // namespace

extern const PrimitiveLoops kPrimitives;
const PrimitiveLoops kPrimitives = {{
#define FT_ELEMENTWISE(Name, mnemonic, domain, operands, parameters, value, gradients, summary) \
  OfFloats<element::Name##Row, ElementwiseDomain::domain>(),
#include "runtime/base/elementwise.def"
#undef FT_ELEMENTWISE
                                    },
                                    {
#define FT_ELEMENTWISE(Name, mnemonic, domain, operands, parameters, value, gradients, summary) \
  OfIntegers<element::Name##Row, ElementwiseDomain::domain>(),
#include "runtime/base/elementwise.def"
#undef FT_ELEMENTWISE
                                    }};

}  // namespace ft::cpu::FT_ISA
