#include <cmath>

#include "runtime/backends/cuda/device_code/element.h"
#include "runtime/backends/cuda/device_code/trigonometry.h"
#include "runtime/kernels/rotary_table/cuda_device.h"

namespace ft::cuda {
namespace {

constexpr int kTableThreads = 256;

// Turns are counted in f64: at position 2^17 the rest of a turn is still good to 2^-36, and what follows is
// f32 on a small angle.
__global__ void __launch_bounds__(kTableThreads) RotaryTableKernel(RotaryTableArgs args) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kTableThreads + threadIdx.x;
  const int64_t position = thread / args.count, i = thread - position * args.count;
  if (position >= args.positions) return;
  const double turns = static_cast<double>(position) * args.quarter_turns[i], whole = rint(turns);
  const uint32_t quarter = static_cast<uint32_t>(static_cast<int64_t>(whole)) & 3;
  const CosSin rotation = OfQuarterTurns(quarter, static_cast<float>(turns - whole));
  const int64_t at = position * args.half + args.first + i;
  args.cosine[at] = args.scale * rotation.cosine;
  args.sine[at] = args.scale * rotation.sine;
}

}  // namespace

int RotaryTable(const RotaryTableArgs& args, StreamHandle stream) {
  const int64_t threads = args.positions * args.count;
  return Launch(RotaryTableKernel,
                {.grid_x = static_cast<unsigned>((threads + kTableThreads - 1) / kTableThreads),
                 .block_x = kTableThreads},
                stream, args);
}

}  // namespace ft::cuda
