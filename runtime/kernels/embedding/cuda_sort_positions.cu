// A radix sort from the lowest digit on, 8 bits at a time: the digits of every tile are counted, the counts
// are scanned digit by digit and tile by tile, and every entry moves to where the scan says.
#include "runtime/backends/cuda/device_code/gpu.h"
#include "runtime/base/cuda_workspace.h"
#include "runtime/kernels/embedding/cuda_sort_positions.h"

namespace ft::cuda {
namespace {

constexpr int kDigitBits = 8;
constexpr int kDigits = 1 << kDigitBits;
static_assert(kDigits == cuda_workspace::kSortDigits);
constexpr int kSortThreads = 256;  // one for each digit
constexpr int kSortWarps = kSortThreads / kWarp;
constexpr int kSortTile = cuda_workspace::kSortTile;
constexpr int kPerWarp = kSortTile / kSortWarps;  // entries in a row
constexpr int kSortRounds = kPerWarp / kWarp;
static_assert(kSortThreads == kDigits && kSortRounds * kWarp * kSortWarps == kSortTile);

struct Pass {
  const int32_t* ids;    // the first pass reads these
  const uint64_t* from;  // the others these
  uint64_t* to;
  uint32_t* counters;  // [kDigits, tiles]
  int positions;
  int tiles;
  int shift;  // of the digit inside an entry
  uint32_t id_limit;
};

template <bool kFirst>
__device__ __forceinline__ uint64_t EntryAt(const Pass& pass, int position) {
  if constexpr (!kFirst) return pass.from[position];
  const uint32_t id = static_cast<uint32_t>(pass.ids[position]);  // ids below 0 become large
  return static_cast<uint64_t>(id < pass.id_limit ? id : pass.id_limit) << 32 |
         static_cast<uint32_t>(position);
}

__device__ __forceinline__ int DigitOf(uint64_t entry, int shift) {
  return static_cast<int>(entry >> shift) & (kDigits - 1);
}

template <bool kFirst>
__global__ __launch_bounds__(kSortThreads) void CountDigits(Pass pass) {
  __shared__ unsigned counts[kDigits];
  const int thread = static_cast<int>(threadIdx.x), tile = static_cast<int>(blockIdx.x);
  counts[thread] = 0;
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kSortTile / kSortThreads; ++k) {
    const int position = tile * kSortTile + k * kSortThreads + thread;
    if (position < pass.positions)
      atomicAdd(&counts[DigitOf(EntryAt<kFirst>(pass, position), pass.shift)], 1u);
  }
  __syncthreads();
  pass.counters[static_cast<int64_t>(thread) * pass.tiles + tile] = counts[thread];
}

constexpr int kScanThreads = 1024;
constexpr int kScanned = 4;  // in a row, by one thread

// Every counter becomes the sum of those before it. One block.
__global__ __launch_bounds__(kScanThreads) void ScanCounters(uint32_t* counters, int count) {
  __shared__ uint32_t sums[kScanThreads / kWarp];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
  uint32_t before = 0;  // the sum of earlier rounds
  for (int first = 0; first < count; first += kScanThreads * kScanned) {
    uint32_t own[kScanned], sum = 0;
#pragma unroll
    for (int k = 0; k < kScanned; ++k) {
      const int i = first + thread * kScanned + k;
      own[k] = i < count ? counters[i] : 0;
      sum += own[k];
    }
    uint32_t through = sum;  // the sum of the warp's lanes up to this one
#pragma unroll
    for (int offset = 1; offset < kWarp; offset *= 2) {
      const uint32_t other = __shfl_up_sync(kAllLanes, through, offset);
      if (lane >= offset) through += other;
    }
    if (lane == kWarp - 1) sums[warp] = through;
    __syncthreads();
    uint32_t warps = sums[lane];  // as many warps as lanes
#pragma unroll
    for (int offset = 1; offset < kWarp; offset *= 2) {
      const uint32_t other = __shfl_up_sync(kAllLanes, warps, offset);
      if (lane >= offset) warps += other;
    }
    const uint32_t total = __shfl_sync(kAllLanes, warps, kWarp - 1);
    const uint32_t earlier_warps = __shfl_sync(kAllLanes, warps, warp == 0 ? 0 : warp - 1);
    uint32_t at = before + (warp == 0 ? 0 : earlier_warps) + through - sum;
#pragma unroll
    for (int k = 0; k < kScanned; ++k) {
      const int i = first + thread * kScanned + k;
      if (i < count) counters[i] = at;
      at += own[k];
    }
    before += total;
    __syncthreads();  // `sums` is written again
  }
}
static_assert(kScanThreads / kWarp == kWarp);

// Lanes whose digit is that of the calling one.
__device__ __forceinline__ unsigned LanesWithDigit(int digit) {
  unsigned lanes = kAllLanes;
#pragma unroll
  for (int bit = 0; bit < kDigitBits; ++bit) {
    const bool set = digit >> bit & 1;
    const unsigned vote = __ballot_sync(kAllLanes, set);
    lanes &= set ? vote : ~vote;
  }
  return lanes;
}

// A warp takes kPerWarp entries in a row, 32 at a time, so that equal digits keep their order.
template <bool kFirst>
__global__ __launch_bounds__(kSortThreads) void MoveEntries(Pass pass) {
  __shared__ uint32_t places[kSortWarps][kDigits];  // how many a warp has of a digit, then where they go
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
  for (int w = 0; w < kSortWarps; ++w) places[w][thread] = 0;
  __syncthreads();
  const int first = static_cast<int>(blockIdx.x) * kSortTile + warp * kPerWarp;
  uint64_t entries[kSortRounds];
  uint32_t ranks[kSortRounds];  // among the warp's entries with this digit
#pragma unroll
  for (int k = 0; k < kSortRounds; ++k) {
    const int position = first + k * kWarp + lane;
    const bool inside = position < pass.positions;
    entries[k] = inside ? EntryAt<kFirst>(pass, position) : 0;
    const int digit = DigitOf(entries[k], pass.shift);
    // Lanes outside vote, but are nobody's equals.
    const unsigned equals = LanesWithDigit(digit) & __ballot_sync(kAllLanes, inside);
    const unsigned before = equals & ((1u << lane) - 1);
    ranks[k] = places[warp][digit] + static_cast<uint32_t>(__popc(before));
    __syncwarp();
    if (inside && before == 0) places[warp][digit] += static_cast<uint32_t>(__popc(equals));
    __syncwarp();
  }
  __syncthreads();
  uint32_t place = pass.counters[static_cast<int64_t>(thread) * pass.tiles + blockIdx.x];
  for (int w = 0; w < kSortWarps; ++w) {
    const uint32_t count = places[w][thread];
    places[w][thread] = place;
    place += count;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kSortRounds; ++k) {
    if (first + k * kWarp + lane >= pass.positions) continue;
    pass.to[places[warp][DigitOf(entries[k], pass.shift)] + ranks[k]] = entries[k];
  }
}

int Passes(int64_t id_limit) {
  int bits = 1;
  while (id_limit >> bits != 0) ++bits;
  return (bits + kDigitBits - 1) / kDigitBits;
}

}  // namespace

int SortedBuffer(const SortPositionsArgs& args) { return (Passes(args.id_limit) - 1) % 2; }

int SortPositions(const SortPositionsArgs& args, StreamHandle stream) {
  Pass pass;
  pass.ids = args.ids;
  pass.counters = args.counters;
  pass.positions = static_cast<int>(args.positions);
  pass.tiles = static_cast<int>(cuda_workspace::SortTiles(args.positions));
  pass.id_limit = static_cast<uint32_t>(args.id_limit);
  LaunchShape tiles, one;
  tiles.grid_x = static_cast<unsigned>(pass.tiles);
  tiles.block_x = kSortThreads;
  one.block_x = kScanThreads;
  for (int i = 0; i < Passes(args.id_limit); ++i) {
    pass.from = args.entries[(i + 1) % 2];
    pass.to = args.entries[i % 2];
    pass.shift = 32 + i * kDigitBits;
    const bool first = i == 0;
    int error = Launch(first ? &CountDigits<true> : &CountDigits<false>, tiles, stream, pass);
    if (error == 0) error = Launch(&ScanCounters, one, stream, pass.counters, kDigits * pass.tiles);
    if (error == 0) error = Launch(first ? &MoveEntries<true> : &MoveEntries<false>, tiles, stream, pass);
    if (error != 0) return error;
  }
  return 0;
}

}  // namespace ft::cuda
