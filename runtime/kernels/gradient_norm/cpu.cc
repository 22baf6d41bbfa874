// sum_squares and clip_coefficient.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/backends/cpu/fixed_point.h"
#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/base/flat_layout.h"
#include "runtime/kernels/cast/cpu_loops.h"
#include "runtime/kernels/gradient_norm/cpu_loops.h"
#include "runtime/kernels/gradient_norm/operands.h"

namespace ft::cpu {
namespace {

constexpr int64_t kBlocksPerPiece = 64;

using Accumulator = std::array<int64_t, kAccumulatorWords>;

KernelOr MakeSumSquares(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const SumSquaresOperands read, ReadSumSquares(context.operands));
  const Tensor& gradient = read.gradient;
  const int64_t elements = gradient.elements(), blocks = (elements + kBlockElements - 1) / kBlockElements;
  const int threads = ThreadsFor(context.num_threads, elements);
  const bool narrow = gradient.dtype != DType::kF32;
  return MakeKernel([=, block_sum = context.loops.gradient_norm.block_sum_squares,
                     to_float = context.loops.convert.to_float[FloatIndex(gradient.dtype)], x = gradient,
                     earlier = read.earlier, factor_at = read.factor, result = read.sum] {
    const float factor = factor_at == nullptr ? 1.0f : *factor_at;
    Accumulator total{};
    if (earlier != nullptr) std::copy_n(earlier, kAccumulatorWords, total.data());
    auto add_blocks = [&](int64_t begin, int64_t end, Accumulator& words) {
      float converted[kBlockElements];
      for (int64_t block = begin; block < end; ++block) {
        const int64_t first = block * kBlockElements, n = std::min(kBlockElements, elements - first);
        if (narrow) to_float(x.data, first, n, converted);
        AddExactly(block_sum(narrow ? converted : x.as<float>() + first, n, factor), words.data());
      }
    };
    auto add_share = [&] {
      Accumulator own{};
#pragma omp for schedule(static) nowait
      for (int64_t begin = 0; begin < blocks; begin += kBlocksPerPiece) {
        add_blocks(begin, std::min(blocks, begin + kBlocksPerPiece), own);
      }
#pragma omp critical(ft_sum_squares)
      AddWords(total.data(), own.data());
    };
    if (threads > 1) {
#pragma omp parallel num_threads(threads)
      add_share();
    } else {  // a team of one would be allocated anew each time
      add_share();
    }
    Normalize(total.data());
    std::copy_n(total.data(), kAccumulatorWords, result);
  });
}

KernelOr MakeClipCoefficient(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const ClipCoefficientOperands read,
                      ReadClipCoefficient(context.operands, context.attributes));
  return MakeKernel([read] {
    const float scale = read.scaler != nullptr ? *read.scaler : 1.0f;
    const float factor = read.factor != nullptr ? *read.factor : 1.0f;
    const float norm = *read.norm =
        static_cast<float>(std::sqrt(ToDouble(read.sum)) / double{scale} * double{factor});
    if (!std::isfinite(norm) || (read.loss != nullptr && !std::isfinite(*read.loss))) {
      *read.coefficient = std::numeric_limits<float>::quiet_NaN();  // no optimizer applies this step
      return;
    }
    const float clip =
        read.max_norm == 0.0 ? 1.0f : std::min(1.0f, static_cast<float>(read.max_norm) / (norm + 1e-6f));
    *read.coefficient = clip / scale * factor;
  });
}

}  // namespace

void RegisterSumSquares(KernelRegistry& registry, Isa isa) {
  Add<MakeSumSquares>(registry, kSumSquaresKernel, isa);
  Add<MakeClipCoefficient>(registry, kClipCoefficientKernel, isa);
}

}  // namespace ft::cpu
