#include <cmath>
#include <vector>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/routines/elementwise.h"

namespace ft::cpu {
namespace {

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
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  const Tensor &x = context.in(0), &r = context.out(0);
  FT_RETURN_IF_ERROR(CheckFloat(x, "x"));
  FT_RETURN_IF_ERROR(CheckSameShape(r, "result", x));
  FT_ASSIGN_OR_RETURN(const int64_t heads, context.attributes.Int("heads"));
  FT_ASSIGN_OR_RETURN(const double base, context.attributes.Float("base"));
  FT_ASSIGN_OR_RETURN(const bool inverse, Flag(context.attributes, "inverse"));
  if (x.rank != 3 || heads < 1 || x.last() % (2 * heads) != 0) {
    return absl::InvalidArgumentError("x must be [B, T, heads * head size] with an even head size");
  }
  const int64_t positions = x.dims[1], half = x.last() / heads / 2;
  std::vector<float> cosine, sine;
  FillTables(positions, half, base, inverse, cosine, sine);
  const auto routine = context.routines.elementwise.rope[FloatIndex(x.dtype)];
  const int64_t rows = x.rows(), grain = std::max<int64_t>(1, kGrain / x.last());
  const int threads = ThreadsFor(context.num_threads, x.elements());
  return MakeKernel([=, cosine = std::move(cosine), sine = std::move(sine), source = x.data, to = r.data] {
    const RopeArgs args = {source, to, cosine.data(), sine.data(), positions, heads, half};
    ParallelRanges(rows, grain, threads, [&](int64_t begin, int64_t end) { routine(args, begin, end); });
  });
}

}  // namespace

void RegisterRope(KernelRegistry& registry, Isa isa) { Add<MakeRope>(registry, "rope", isa); }

}  // namespace ft::cpu
