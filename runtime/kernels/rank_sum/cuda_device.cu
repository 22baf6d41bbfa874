#include "runtime/backends/cuda/device_code/element.h"
#include "runtime/kernels/rank_sum/cuda_device.h"

namespace ft::cuda {
namespace {

constexpr int kRankThreads = 256;
// Of one piece; longer ones are gone over by the same blocks again.
constexpr int64_t kMaxBlocks = 2048;
constexpr int kInvalidValue = 1;  // cudaErrorInvalidValue

// What elements are added up in, and how they get there and back.
template <typename T>
struct Summing {
  using Accumulator = float;
  __device__ __forceinline__ static float Load(T x) { return ToFloat(x); }
  __device__ __forceinline__ static T Store(float x) { return FromFloat<T>(x); }
  __device__ __forceinline__ static float Add(float a, float b) { return a + b; }
};
template <>
struct Summing<double> {
  using Accumulator = double;
  __device__ __forceinline__ static double Load(double x) { return x; }
  __device__ __forceinline__ static double Store(double x) { return x; }
  __device__ __forceinline__ static double Add(double a, double b) { return a + b; }
};
// Unsigned, because integers wrap.
template <typename T>
struct WrappingSum {
  using Accumulator = T;
  __device__ __forceinline__ static T Load(T x) { return x; }
  __device__ __forceinline__ static T Store(T x) { return x; }
  __device__ __forceinline__ static T Add(T a, T b) { return a + b; }
};
template <>
struct Summing<uint32_t> : WrappingSum<uint32_t> {};
template <>
struct Summing<uint64_t> : WrappingSum<uint64_t> {};

// kWidth neighbouring elements, read as one.
template <typename T, int kWidth>
struct Partial {
  using S = Summing<T>;
  typename S::Accumulator at[kWidth];

  __device__ __forceinline__ static Partial Read(const T* address) {
    Partial result;
    const auto pack = *reinterpret_cast<const Pack<T, kWidth>*>(address);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) result.at[i] = S::Load(pack.at[i]);
    return result;
  }
  __device__ __forceinline__ static Partial Add(const Partial& a, const Partial& b) {
    Partial result;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) result.at[i] = S::Add(a.at[i], b.at[i]);
    return result;
  }
  __device__ __forceinline__ void Write(T* address) const {
    Pack<T, kWidth> pack;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) pack.at[i] = S::Store(at[i]);
    *reinterpret_cast<Pack<T, kWidth>*>(address) = pack;
  }
};

// The tree over ranks, walked from rank 0 up: the sums of complete subtrees wait on a stack, one for each
// power of two, as the bits of a counter that is counted up. Four ranks at a time, whose reads overlap.
// kLevels: the number of bits of ranks / 4.
template <typename T, int kWidth, int kLevels>
__device__ __forceinline__ Partial<T, kWidth> TreeOver(const RankSumArgs& args, const RankSumPiece& piece,
                                                       int64_t element) {
  using P = Partial<T, kWidth>;
  const auto read = [&](int rank) {
    const auto* slot = reinterpret_cast<const T*>(static_cast<const char*>(args.slots) +
                                                  rank * args.slot_bytes + piece.offset);
    return P::Read((rank == args.own_rank ? static_cast<const T*>(piece.own) : slot) + element);
  };
  P stack[kLevels] = {};  // no level is read before it was written, which compilers do not see
  const int fours = args.ranks / 4, rest = args.ranks % 4;
  for (int four = 0; four < fours; ++four) {
    const P a = read(4 * four), b = read(4 * four + 1), c = read(4 * four + 2), d = read(4 * four + 3);
    P sum = P::Add(P::Add(a, b), P::Add(c, d));
    bool carried = true;
#pragma unroll
    for (int level = 0; level < kLevels; ++level) {
      if (!carried) continue;
      if ((four >> level & 1) != 0) {
        sum = P::Add(stack[level], sum);
      } else {
        stack[level] = sum;
        carried = false;
      }
    }
  }
  P sum;
  bool any = rest > 0;
  if (rest > 0) sum = read(4 * fours);
  if (rest > 1) sum = P::Add(sum, read(4 * fours + 1));
  if (rest > 2) sum = P::Add(sum, read(4 * fours + 2));
#pragma unroll
  for (int level = 0; level < kLevels; ++level) {
    if ((fours >> level & 1) == 0) continue;
    sum = any ? P::Add(stack[level], sum) : stack[level];
    any = true;
  }
  return sum;
}

template <typename T, int kWidth, int kLevels>
__device__ __forceinline__ void SumPiece(const RankSumArgs& args, const RankSumPiece& piece) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kRankThreads * kWidth;
  int64_t element = (static_cast<int64_t>(blockIdx.x) * kRankThreads + threadIdx.x) * kWidth;
  for (; element + kWidth <= piece.count; element += stride) {
    TreeOver<T, kWidth, kLevels>(args, piece, element).Write(static_cast<T*>(piece.out) + element);
  }
  if constexpr (kWidth > 1) {  // the end that fills no pack: exactly one thread would take it next
    for (; element < piece.count; ++element) {
      TreeOver<T, 1, kLevels>(args, piece, element).Write(static_cast<T*>(piece.out) + element);
    }
  }
}

// For one block a multiprocessor: with room for more of them ptxas spills a register or two.
template <typename T, int kLevels>
__global__ void __launch_bounds__(kRankThreads, 1) RankSumKernel(const RankSumArgs args) {
  constexpr int kWidth = 16 / sizeof(T);
  const RankSumPiece piece = args.pieces[blockIdx.y];
  const bool packed = (reinterpret_cast<uintptr_t>(piece.own) | reinterpret_cast<uintptr_t>(piece.out) |
                       reinterpret_cast<uintptr_t>(args.slots) | static_cast<uintptr_t>(piece.offset)) %
                          16 ==
                      0;
  if (packed) {
    SumPiece<T, kWidth, kLevels>(args, piece);
  } else {
    SumPiece<T, 1, kLevels>(args, piece);
  }
}

// All pieces of `args` have the element type T.
template <typename T>
int LaunchFor(const RankSumArgs& args, StreamHandle stream) {
  int64_t longest = 0;
  for (int i = 0; i < args.num_pieces; ++i) {
    if (args.pieces[i].count > longest) longest = args.pieces[i].count;
  }
  if (longest == 0) return 0;
  constexpr int64_t kPerBlock = kRankThreads * (16 / sizeof(T));
  const int64_t blocks = (longest + kPerBlock - 1) / kPerBlock;
  LaunchShape shape;
  shape.grid_x = static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks);
  shape.grid_y = static_cast<unsigned>(args.num_pieces);
  shape.block_x = kRankThreads;
  if (args.ranks < 16) return Launch(RankSumKernel<T, 2>, shape, stream, args);
  if (args.ranks < 64) return Launch(RankSumKernel<T, 4>, shape, stream, args);
  return Launch(RankSumKernel<T, 10>, shape, stream, args);
}

int LaunchType(DType dtype, const RankSumArgs& args, StreamHandle stream) {
  switch (dtype) {
    case DType::kF32:
      return LaunchFor<float>(args, stream);
    case DType::kBF16:
      return LaunchFor<BF16>(args, stream);
    case DType::kF16:
      return LaunchFor<F16>(args, stream);
    case DType::kF64:
      return LaunchFor<double>(args, stream);
    case DType::kI32:
      return LaunchFor<uint32_t>(args, stream);
    case DType::kI64:
      return LaunchFor<uint64_t>(args, stream);
    case DType::kU8:
      break;
  }
  return kInvalidValue;
}

}  // namespace

int RankSum(const RankSumArgs& args, StreamHandle stream) {
  if (args.ranks < 1 || args.ranks > kMaxRankSumRanks || args.num_pieces > kMaxRankSumPieces)
    return kInvalidValue;
  for (const DType dtype :
       {DType::kF32, DType::kBF16, DType::kF16, DType::kF64, DType::kI32, DType::kI64, DType::kU8}) {
    RankSumArgs same = args;
    same.num_pieces = 0;
    for (int i = 0; i < args.num_pieces; ++i) {
      if (args.pieces[i].dtype == dtype) same.pieces[same.num_pieces++] = args.pieces[i];
    }
    if (same.num_pieces == 0) continue;
    if (const int error = LaunchType(dtype, same, stream); error != 0) return error;
  }
  return 0;
}

}  // namespace ft::cuda
