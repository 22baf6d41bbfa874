#include <algorithm>
#include <cmath>
#include <vector>

#include "fmt/format.h"
#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/kernels/rope/cpu_loops.h"
#include "runtime/kernels/rope/operands.h"

namespace ft::cpu {
namespace {

// Elements of a table of cosines, 1 GiB: 2 million positions of heads of 256.
constexpr int64_t kMostAngles = int64_t{1} << 28;

// cos and sin of position * base^(-i / half), computed in f64.
void FillTables(int64_t positions, int64_t half, double base, bool inverse, std::vector<float>& cosine,
                std::vector<float>& sine) {
  cosine.resize(positions * half);
  sine.resize(positions * half);
  for (int64_t i = 0; i < half; ++i) {
    const double frequency = std::pow(base, -static_cast<double>(i) / static_cast<double>(half));
    for (int64_t t = 0; t < positions; ++t) {
      const double angle = static_cast<double>(t) * frequency;
      cosine[t * half + i] = static_cast<float>(std::cos(angle));
      sine[t * half + i] = static_cast<float>(inverse ? -std::sin(angle) : std::sin(angle));
    }
  }
}

KernelOr MakeRope(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const RopeOperands rope, ReadRope(context.operands, context.attributes));
  const Tensor& x = rope.x;
  const int64_t positions = rope.positions(), half = rope.half;
  if (half > kMostAngles / std::max<int64_t>(1, positions))
    return absl::InvalidArgumentError(
        fmt::format("{} positions of heads of {} are too many", positions, 2 * half));
  std::vector<float> cosine, sine;
  FillTables(positions, half, rope.base, rope.inverse, cosine, sine);
  const auto loop = context.loops.rope.rope[FloatIndex(x.dtype)];
  const int64_t rows = x.rows(), grain = std::max<int64_t>(1, kGrain / x.last());
  const int threads = ThreadsFor(context.num_threads, x.elements());
  return MakeKernel([=, cosine = std::move(cosine), sine = std::move(sine), source = x.data,
                     to = rope.result.data, heads = rope.heads] {
    const RopeArgs args = {source, to, cosine.data(), sine.data(), positions, heads, half};
    ParallelRanges(rows, grain, threads, [&](int64_t begin, int64_t end) { loop(args, begin, end); });
  });
}

}  // namespace

void RegisterRope(KernelRegistry& registry, Isa isa) { Add<MakeRope>(registry, "rope", isa); }

}  // namespace ft::cpu
