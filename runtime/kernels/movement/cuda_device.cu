#include "runtime/backends/cuda/device_code/element.h"
#include "runtime/kernels/movement/cuda_device.h"

namespace ft::cuda {
namespace {

constexpr int kMoveThreads = 256;
constexpr int kMoveInFlight = 4;  // units of a thread that are under way at once
constexpr int kMoveTile = kMoveThreads * kMoveInFlight;

// Units are numbered along the rows of all parts together, so a warp's accesses to the whole tensor, and but
// for the seams those to a part, are consecutive.
template <typename Unit>
__global__ void __launch_bounds__(kMoveThreads) CopyRowsKernel(RowCopyArgs args) {
  const int64_t tile = static_cast<int64_t>(blockIdx.x) * kMoveTile, units = args.rows * args.columns;
  const int64_t first_row = tile / args.columns;
  const uint32_t first_column = static_cast<uint32_t>(tile - first_row * args.columns);
  Unit held[kMoveInFlight];
  Unit* to[kMoveInFlight];
#pragma unroll
  for (int k = 0; k < kMoveInFlight; ++k) {
    const uint32_t local = threadIdx.x + k * kMoveThreads;
    to[k] = nullptr;
    if (tile + local >= units) continue;
    const uint32_t along = first_column + local, rows_on = along / args.columns;
    const uint32_t column = along - rows_on * args.columns;
    int i = 0;
    while (column >= args.parts[i].end) ++i;
    const RowPart& part = args.parts[i];
    const int64_t row = first_row + rows_on, offset = column - part.begin;
    held[k] = static_cast<const Unit*>(part.from)[row * part.from_stride + offset];
    to[k] = static_cast<Unit*>(part.to) + row * part.to_stride + offset;
  }
#pragma unroll
  for (int k = 0; k < kMoveInFlight; ++k) {
    if (to[k] != nullptr) *to[k] = held[k];
  }
}

template <typename Unit>
int LaunchCopy(const RowCopyArgs& args, StreamHandle stream) {
  const int64_t blocks = (args.rows * args.columns + kMoveTile - 1) / kMoveTile;
  return Launch(CopyRowsKernel<Unit>, {.grid_x = static_cast<unsigned>(blocks), .block_x = kMoveThreads},
                stream, args);
}

// pattern, beginning with byte `skipped` of it.
__device__ __forceinline__ uint64_t Rotated(uint64_t pattern, uint32_t skipped) {
  const uint32_t bits = skipped % 8 * 8;
  return bits == 0 ? pattern : pattern >> bits | pattern << (64 - bits);
}

// Block y fills range y: the bytes up to a multiple of 16, packs, the rest.
__global__ void __launch_bounds__(kMoveThreads) FillKernel(FillArgs args) {
  const ByteRange range = args.ranges[blockIdx.y];
  uint8_t* to = static_cast<uint8_t*>(args.to) + range.begin;
  const int64_t bytes = range.end - range.begin;
  const int64_t to_boundary = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) & 15);
  const int64_t head = bytes < to_boundary ? bytes : to_boundary;
  const int64_t packs = (bytes - head) / 16;
  const uint64_t body = Rotated(args.pattern, static_cast<uint32_t>(head));
  const Pack<uint64_t> pack = {{body, body}};
  uint64_t* at = reinterpret_cast<uint64_t*>(to + head);
#pragma unroll
  for (int k = 0; k < kMoveInFlight; ++k) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * kMoveTile + k * kMoveThreads + threadIdx.x;
    if (i < packs) StorePack(at + 2 * i, pack);
  }
  if (blockIdx.x != 0) return;
  if (threadIdx.x < head) to[threadIdx.x] = static_cast<uint8_t>(Rotated(args.pattern, threadIdx.x));
  const int64_t tail = head + 16 * packs + threadIdx.x;
  if (tail < bytes) to[tail] = static_cast<uint8_t>(Rotated(body, threadIdx.x));
}

__global__ void __launch_bounds__(kMoveThreads) IotaKernel(int32_t* to, int64_t elements) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kMoveThreads + threadIdx.x;
  if (i < elements) to[i] = static_cast<int32_t>(i);
}

}  // namespace

int CopyRows(const RowCopyArgs& args, int unit_bytes, StreamHandle stream) {
  if (args.rows == 0 || args.columns == 0) return 0;
  switch (unit_bytes) {
    case 16:
      return LaunchCopy<Pack<uint64_t>>(args, stream);
    case 8:
      return LaunchCopy<uint64_t>(args, stream);
    case 4:
      return LaunchCopy<uint32_t>(args, stream);
    case 2:
      return LaunchCopy<uint16_t>(args, stream);
    default:
      return LaunchCopy<uint8_t>(args, stream);
  }
}

int Fill(const FillArgs& args, StreamHandle stream) {
  if (args.count == 0 || args.longest == 0) return 0;
  const int64_t packs = (args.longest + 15) / 16;
  return Launch(FillKernel,
                {.grid_x = static_cast<unsigned>((packs + kMoveTile - 1) / kMoveTile),
                 .grid_y = static_cast<unsigned>(args.count),
                 .block_x = kMoveThreads},
                stream, args);
}

int FillZeros(void* to, int64_t bytes, StreamHandle stream) {
  FillArgs args = {.to = to, .pattern = 0, .longest = bytes, .count = 1, .ranges = {}};
  args.ranges[0] = {0, bytes};
  return Fill(args, stream);
}

int Iota(int32_t* to, int64_t elements, StreamHandle stream) {
  if (elements == 0) return 0;
  return Launch(IotaKernel,
                {.grid_x = static_cast<unsigned>((elements + kMoveThreads - 1) / kMoveThreads),
                 .block_x = kMoveThreads},
                stream, to, elements);
}

}  // namespace ft::cuda
