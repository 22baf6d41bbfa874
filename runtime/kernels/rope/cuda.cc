#include <algorithm>
#include <cmath>
#include <vector>

#include "fmt/format.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/kernels/rope/cuda_device.h"
#include "runtime/kernels/rope/operands.h"

namespace ft::cuda {
namespace {

// Launches for kMaxFrequencies pairs of a head at a time.
std::vector<RopeArgs> RopeLaunches(RopeArgs args, double base) {
  std::vector<RopeArgs> launches;
  for (args.first = 0; args.first < args.half; args.first += kMaxFrequencies) {
    args.count = std::min<int64_t>(kMaxFrequencies, args.half - args.first);
    for (int64_t i = 0; i < args.count; ++i) {
      const double exponent = static_cast<double>(args.first + i) / static_cast<double>(args.half);
      args.quarter_turns[i] = std::pow(base, -exponent) / (M_PI / 2);
    }
    launches.push_back(args);
  }
  return launches;
}

KernelOr MakeRope(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const RopeOperands rope, ReadRope(context.operands, context.attributes));
  const Tensor& x = rope.x;
  if (x.dims[0] > kMaxRopeBatch) {
    return absl::InvalidArgumentError(
        fmt::format("takes up to {} sequences, got {}", kMaxRopeBatch, x.dims[0]));
  }
  RopeArgs args = {};
  args.x = x.data;
  args.r = rope.result.data;
  args.batch = x.dims[0];
  args.positions = rope.positions();
  args.heads = rope.heads;
  args.half = rope.half;
  args.inverse = rope.inverse;
  return MakeKernel([launches = RopeLaunches(args, rope.base), dtype = x.dtype](StreamHandle stream) {
    for (const RopeArgs& launch : launches) {
      if (const int error = Rope(launch, dtype, stream); error != 0) return error;
    }
    return 0;
  });
}

}  // namespace

void RegisterRope(KernelTable& table) { table.Add("rope", &MakeRope); }

}  // namespace ft::cuda
