// reduce: sums in f64, one element after the other.
#include <cmath>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/kernels/typed_elements.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/device/reduction.h"

namespace ft::cpu {
namespace {

// NaN where one of them is.
double Larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double Smaller(double a, double b) { return std::isnan(a) || a < b ? a : b; }
int64_t Larger(int64_t a, int64_t b) { return a > b ? a : b; }
int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// Where a loop nest stands; the innermost moves fastest.
class Odometer {
 public:
  explicit Odometer(const ReductionLoops& loops) : loops_(loops) {}
  void Next() {
    for (int i = loops_.rank - 1; i >= 0; --i) {
      offset_ += loops_.strides[i];
      if (++at_[i] < loops_.dims[i]) return;
      offset_ -= loops_.strides[i] * loops_.dims[i];
      at_[i] = 0;
    }
  }
  int64_t offset() const { return offset_; }

 private:
  const ReductionLoops& loops_;
  std::array<int64_t, kMaxRank> at_ = {};
  int64_t offset_ = 0;
};

int64_t OffsetOf(const ReductionLoops& loops, int64_t index) {
  int64_t offset = 0;
  for (int i = loops.rank - 1; i >= 0; --i) {
    offset += index % loops.dims[i] * loops.strides[i];
    index /= loops.dims[i];
  }
  return offset;
}

// Of the elements that go into one of the result, whose first is at `base`.
template <typename T, typename F>
auto Reduced(const Reduction& reduction, int64_t base, int64_t count, const F& combine) {
  Odometer inner(reduction.reduced);
  auto value = T::Get(reduction.x, base);
  for (int64_t i = 1; i < count; ++i) {
    inner.Next();
    value = combine(value, T::Get(reduction.x, base + inner.offset()));
  }
  return value;
}

template <typename T>
auto Element(const Reduction& reduction, int64_t index, int64_t count) {
  const int64_t base = OffsetOf(reduction.kept, index);
  switch (reduction.kind) {
    case ReductionKind::kSum:
      return Reduced<T>(reduction, base, count, [](auto a, auto b) { return Sum(a, b); });
    case ReductionKind::kMax:
      return Reduced<T>(reduction, base, count, [](auto a, auto b) { return Larger(a, b); });
    default:
      return Reduced<T>(reduction, base, count, [](auto a, auto b) { return Smaller(a, b); });
  }
}

template <typename T>
KernelOr MakeOf(const Reduction& reduction, int num_threads) {
  const int64_t elements = reduction.kept.count(), count = reduction.reduced.count();
  return MakeRowwise(
      [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          PutElement(reduction.result, reduction.result_dtype, i, Element<T>(reduction, i, count));
      },
      elements, count, num_threads);
}

KernelOr MakeReduce(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const Reduction reduction, CheckReduction(context.operands, context.attributes));
  return WithElements(reduction.dtype,
                      [&]<typename T>() { return MakeOf<T>(reduction, context.num_threads); });
}

}  // namespace

void RegisterReduce(KernelRegistry& registry, Isa isa) { Add<MakeReduce>(registry, "reduce", isa); }

}  // namespace ft::cpu
