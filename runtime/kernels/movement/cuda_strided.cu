#include "runtime/backends/cuda/device_code/element.h"
#include "runtime/kernels/movement/cuda_strided.h"

namespace ft::cuda {
namespace {

constexpr int kStridedThreads = 256;
constexpr int kStridedInFlight = 4;  // units of a thread that are under way at once
constexpr int kStridedTile = kStridedThreads * kStridedInFlight;

// Index holds the number of units: most of the work is divisions, which take far longer in 64 bits.
template <typename Unit, typename Index>
__global__ void __launch_bounds__(kStridedThreads) CopyStridedKernel(StridedArgs args) {
  const int64_t tile = static_cast<int64_t>(blockIdx.x) * kStridedTile;
  Unit held[kStridedInFlight];
  Unit* places[kStridedInFlight];
#pragma unroll
  for (int k = 0; k < kStridedInFlight; ++k) {
    const int64_t unit = tile + threadIdx.x + k * kStridedThreads;
    places[k] = nullptr;
    if (unit >= args.units) continue;
    Index rest = static_cast<Index>(unit);
    int64_t from = 0, to = 0;
    for (int d = args.loops.rank - 1; d > 0; --d) {
      const Index extent = static_cast<Index>(args.loops.dims[d]), next = rest / extent;
      const int64_t at = rest - next * extent;
      from += at * args.from_strides[d];
      to += at * args.loops.strides[d];
      rest = next;
    }
    held[k] = static_cast<const Unit*>(args.from)[from + rest * args.from_strides[0]];
    places[k] = static_cast<Unit*>(args.to) + to + rest * args.loops.strides[0];
  }
#pragma unroll
  for (int k = 0; k < kStridedInFlight; ++k) {
    if (places[k] != nullptr) *places[k] = held[k];
  }
}

template <typename Unit>
int LaunchStrided(const StridedArgs& args, StreamHandle stream) {
  const int64_t blocks = (args.units + kStridedTile - 1) / kStridedTile;
  const bool narrow = args.units < int64_t{1} << 32;
  return Launch(narrow ? CopyStridedKernel<Unit, uint32_t> : CopyStridedKernel<Unit, uint64_t>,
                {.grid_x = static_cast<unsigned>(blocks), .block_x = kStridedThreads}, stream, args);
}

}  // namespace

int CopyStrided(const StridedArgs& args, int unit_bytes, StreamHandle stream) {
  if (args.units == 0) return 0;
  switch (unit_bytes) {
    case 16:
      return LaunchStrided<Pack<uint64_t>>(args, stream);
    case 8:
      return LaunchStrided<uint64_t>(args, stream);
    case 4:
      return LaunchStrided<uint32_t>(args, stream);
    case 2:
      return LaunchStrided<uint16_t>(args, stream);
    default:
      return LaunchStrided<uint8_t>(args, stream);
  }
}

}  // namespace ft::cuda
