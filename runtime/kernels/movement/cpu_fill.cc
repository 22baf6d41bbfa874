// fill, iota and zero_padding.
#include <algorithm>
#include <cstring>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/base/status_macros.h"
#include "runtime/kernels/cast/cpu_loops.h"
#include "runtime/kernels/movement/padding.h"

namespace ft::cpu {
namespace {

template <typename T>
KernelOr FillWith(const Tensor& r, T value, int threads) {
  return MakeKernel([=, to = r.as<T>(), elements = r.elements()] {
    ParallelRanges(elements, kGrain, threads,
                   [&](int64_t begin, int64_t end) { std::fill(to + begin, to + end, value); });
  });
}

KernelOr MakeFill(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 0, 1));
  const Tensor& r = context.out(0);
  FT_RETURN_IF_ERROR(CheckPresent(r, "result", r.dtype));
  FT_ASSIGN_OR_RETURN(const double value, FillValue(context.attributes, r.dtype));
  const int64_t elements = r.elements();
  const int threads = ThreadsFor(context.num_threads, elements);
  if (value == 0.0) {  // all bits zero in every type
    return MakeKernel([=, to = r.as<char>(), size = static_cast<int64_t>(SizeOf(r.dtype))] {
      ParallelRanges(elements, kGrain, threads, [&](int64_t begin, int64_t end) {
        std::memset(to + begin * size, 0, (end - begin) * size);
      });
    });
  }
  switch (r.dtype) {
    case DType::kF32:
      return MakeKernel(
          [=, fill = context.loops.convert.fill, to = r.as<float>(), value = static_cast<float>(value)] {
            ParallelRanges(elements, kGrain, threads,
                           [&](int64_t begin, int64_t end) { fill(to, value, begin, end); });
          });
    case DType::kBF16:
    case DType::kF16: {
      uint16_t bits = 0;
      const float rounded = static_cast<float>(value);
      context.loops.convert.from_float[FloatIndex(r.dtype)](&rounded, &bits, 0, 1);
      return FillWith(r, bits, threads);
    }
    case DType::kF64:
      return FillWith(r, value, threads);
    case DType::kI32:
      return FillWith(r, static_cast<int32_t>(value), threads);
    case DType::kI64:
      return FillWith(r, static_cast<int64_t>(value), threads);
    case DType::kU8:
      return FillWith(r, static_cast<uint8_t>(value), threads);
  }
  return absl::InvalidArgumentError("unknown type");
}

// Row ids 0, 1, 2, ... of a whole tensor.
KernelOr MakeIota(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 0, 1));
  FT_RETURN_IF_ERROR(CheckPresent(context.out(0), "result", DType::kI32));
  return MakeKernel([to = context.out(0).as<int32_t>(), elements = context.out(0).elements()] {
    for (int64_t i = 0; i < elements; ++i) to[i] = static_cast<int32_t>(i);
  });
}

KernelOr MakeZeroPadding(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(std::vector<ByteRange> padding, ReadPadding(context.operands));
  return MakeKernel([padding = std::move(padding), to = context.out(0).as<char>()] {
    for (const ByteRange& range : padding) std::memset(to + range.begin, 0, range.end - range.begin);
  });
}

}  // namespace

void RegisterFill(KernelRegistry& registry, Isa isa) {
  Add<MakeFill>(registry, "fill", isa);
  Add<MakeIota>(registry, "iota", isa);
  Add<MakeZeroPadding>(registry, "zero_padding", isa);
}

}  // namespace ft::cpu
