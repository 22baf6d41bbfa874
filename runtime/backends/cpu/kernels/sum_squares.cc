// sum_squares and clip_coefficient.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "fmt/format.h"
#include "runtime/backends/cpu/fixed_point.h"
#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/routines/optimizer.h"
#include "runtime/base/flat_layout.h"

namespace ft::cpu {
namespace {

constexpr int64_t kBlocksPerPiece = 64;

using Accumulator = std::array<int64_t, kAccumulatorWords>;

KernelOr MakeSumSquares(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 2, 1));
  const Tensor &gradient = context.in(0), &acc = context.in(1), &sum = context.out(0);
  FT_RETURN_IF_ERROR(CheckPresent(gradient, "gradient"));
  FT_RETURN_IF_ERROR(CheckSize(sum, "sum", kAccumulatorWords, DType::kI64));
  if (acc.present()) FT_RETURN_IF_ERROR(CheckSize(acc, "acc", kAccumulatorWords, DType::kI64));
  if (gradient.flat_begin % kBlockElements != 0) {
    return absl::InvalidArgumentError(fmt::format("a slice must begin at a multiple of {}", kBlockElements));
  }
  const int64_t elements = gradient.elements(), blocks = (elements + kBlockElements - 1) / kBlockElements;
  const int threads = ThreadsFor(context.num_threads, elements);
  return MakeKernel([=, block_sum = context.routines.optimizer.block_sum_squares, x = gradient.as<float>(),
                     earlier = acc.as<int64_t>(), result = sum.as<int64_t>()] {
    Accumulator total{};
    if (earlier != nullptr) std::copy_n(earlier, kAccumulatorWords, total.data());
    auto add_blocks = [&](int64_t begin, int64_t end, Accumulator& words) {
      for (int64_t block = begin; block < end; ++block) {
        AddExactly(block_sum(x + block * kBlockElements,
                             std::min(kBlockElements, elements - block * kBlockElements)),
                   words.data());
      }
    };
    auto add_share = [&] {
      Accumulator own{};
#pragma omp for schedule(static) nowait
      for (int64_t begin = 0; begin < blocks; begin += kBlocksPerPiece) {
        add_blocks(begin, std::min(blocks, begin + kBlocksPerPiece), own);
      }
#pragma omp critical(ft_sum_squares)
      for (int w = 0; w < kAccumulatorWords; ++w) total[w] += own[w];
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
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 2));
  FT_RETURN_IF_ERROR(CheckSize(context.in(0), "sum", kAccumulatorWords, DType::kI64));
  FT_RETURN_IF_ERROR(CheckSize(context.out(0), "norm", 1));
  FT_RETURN_IF_ERROR(CheckSize(context.out(1), "coefficient", 1));
  FT_ASSIGN_OR_RETURN(const double max_norm, context.attributes.Float("max_norm"));
  return MakeKernel([=, sum = context.in(0).as<int64_t>(), norm = context.out(0).as<float>(),
                     coefficient = context.out(1).as<float>()] {
    *norm = static_cast<float>(std::sqrt(ToDouble(sum)));
    *coefficient = max_norm == 0.0 ? 1.0f : std::min(1.0f, static_cast<float>(max_norm) / (*norm + 1e-6f));
  });
}

}  // namespace

void RegisterSumSquares(KernelRegistry& registry, Isa isa) {
  Add<MakeSumSquares>(registry, "sum_squares", isa);
  Add<MakeClipCoefficient>(registry, "clip_coefficient", isa);
}

}  // namespace ft::cpu
