// sum_squares and clip_coefficient.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "fmt/format.h"
#include "runtime/backends/cpu/fixed_point.h"
#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/routines/convert.h"
#include "runtime/backends/cpu/routines/optimizer.h"
#include "runtime/base/flat_layout.h"

namespace ft::cpu {
namespace {

constexpr int64_t kBlocksPerPiece = 64;

using Accumulator = std::array<int64_t, kAccumulatorWords>;

KernelOr MakeSumSquares(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 2, 1));
  const Tensor &gradient = context.in(0), &acc = context.in(1), &sum = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(gradient, "gradient"));
  FT_RETURN_IF_ERROR(CheckSize(sum, "sum", kAccumulatorWords, DType::kI64));
  if (acc.present()) FT_RETURN_IF_ERROR(CheckSize(acc, "acc", kAccumulatorWords, DType::kI64));
  if (gradient.flat_begin % kBlockElements != 0) {
    return absl::InvalidArgumentError(fmt::format("a slice must begin at a multiple of {}", kBlockElements));
  }
  const int64_t elements = gradient.elements(), blocks = (elements + kBlockElements - 1) / kBlockElements;
  const int threads = ThreadsFor(context.num_threads, elements);
  const bool narrow = gradient.dtype != DType::kF32;
  return MakeKernel([=, block_sum = context.routines.optimizer.block_sum_squares,
                     to_float = context.routines.convert.to_float[FloatIndex(gradient.dtype)], x = gradient,
                     earlier = acc.as<int64_t>(), result = sum.as<int64_t>()] {
    Accumulator total{};
    if (earlier != nullptr) std::copy_n(earlier, kAccumulatorWords, total.data());
    auto add_blocks = [&](int64_t begin, int64_t end, Accumulator& words) {
      float converted[kBlockElements];
      for (int64_t block = begin; block < end; ++block) {
        const int64_t first = block * kBlockElements, n = std::min(kBlockElements, elements - first);
        if (narrow) to_float(x.data, first, n, converted);
        AddExactly(block_sum(narrow ? converted : x.as<float>() + first, n), words.data());
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
  // Plans without loss and scaler may leave them out altogether.
  const bool short_form = context.operands.in.size() == 1;
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, short_form ? 1 : 3, 2));
  const Tensor loss = short_form ? Tensor{} : context.in(1), scaler = short_form ? Tensor{} : context.in(2);
  FT_RETURN_IF_ERROR(CheckSize(context.in(0), "sum", kAccumulatorWords, DType::kI64));
  if (loss.present()) FT_RETURN_IF_ERROR(CheckSize(loss, "loss", 1));
  if (scaler.present()) FT_RETURN_IF_ERROR(CheckSize(scaler, "scaler", 3));
  FT_RETURN_IF_ERROR(CheckSize(context.out(0), "norm", 1));
  FT_RETURN_IF_ERROR(CheckSize(context.out(1), "coefficient", 1));
  FT_ASSIGN_OR_RETURN(const double max_norm, FloatIn(context.attributes, "max_norm", 0.0));
  return MakeKernel([=, sum = context.in(0).as<int64_t>(), mean_loss = loss.as<float>(),
                     state = scaler.as<float>(), norm = context.out(0).as<float>(),
                     coefficient = context.out(1).as<float>()] {
    const float scale = state != nullptr ? *state : 1.0f;
    *norm = static_cast<float>(std::sqrt(ToDouble(sum)) / double{scale});
    if (!std::isfinite(*norm) || (mean_loss != nullptr && !std::isfinite(*mean_loss))) {
      *coefficient = std::numeric_limits<float>::quiet_NaN();  // no optimizer applies this step
      return;
    }
    const float clip =
        max_norm == 0.0 ? 1.0f : std::min(1.0f, static_cast<float>(max_norm) / (*norm + 1e-6f));
    *coefficient = clip / scale;
  });
}

}  // namespace

void RegisterSumSquares(KernelRegistry& registry, Isa isa) {
  Add<MakeSumSquares>(registry, "sum_squares", isa);
  Add<MakeClipCoefficient>(registry, "clip_coefficient", isa);
}

}  // namespace ft::cpu
