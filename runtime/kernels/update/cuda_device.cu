#include "runtime/backends/cuda/device_code/gpu.h"
#include "runtime/backends/cuda/device_code/philox.h"
#include "runtime/backends/cuda/device_code/store.h"
#include "runtime/kernels/update/cuda_device.h"

namespace ft::cuda {
namespace {

using Kind = ScalarOpKind;

// base^exponent for an integer exponent >= 0, within about 2 log2(exponent) roundings.
__device__ inline double Power(double base, int64_t exponent) {
  double result = 1.0;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

__device__ inline double Applied(Kind kind, double a, double b) {
  switch (kind) {
    case Kind::kAdd:
      return a + b;
    case Kind::kSub:
      return a - b;
    case Kind::kMul:
      return a * b;
    case Kind::kDiv:
      return a / b;
    case Kind::kPow:
      return b >= 0.0 && b < 0x1p53 && b == static_cast<double>(static_cast<int64_t>(b))
                 ? Power(a, static_cast<int64_t>(b))
                 : pow(a, b);
    case Kind::kMin:
      return b < a ? b : a;
    default:
      return a < b ? b : a;
  }
}

// A thread has a formula, without or with weight decay.
__global__ void UpdateScalarsKernel(const StepScalars formulas, const UpdateScalarsArgs args) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread >= 2 * formulas.count) return;
  const bool decays = thread >= formulas.count;
  const int index = decays ? thread - formulas.count : thread;
  double stack[kMaxScalarStack + 1];
  int top = 0;
  for (int i = index == 0 ? 0 : formulas.ends[index - 1]; i < formulas.ends[index]; ++i) {
    const ScalarOp op = formulas.ops[i];
    switch (op.kind) {
      case Kind::kNumber:
        stack[top++] = op.number;
        break;
      case Kind::kClip:
        stack[top++] = static_cast<double>(*args.coefficient);
        break;
      case Kind::kLr:
        stack[top++] = static_cast<double>(*args.lr);
        break;
      case Kind::kT:
        stack[top++] = static_cast<double>(*args.step) + 1.0;
        break;
      case Kind::kWeightDecay:
        stack[top++] = decays ? formulas.weight_decay : 0.0;
        break;
      case Kind::kInverseRanks:
        stack[top++] = static_cast<double>(*args.inverse_ranks);
        break;
      case Kind::kNeg:
        stack[top - 1] = -stack[top - 1];
        break;
      case Kind::kSqrt:
        stack[top - 1] = sqrt(stack[top - 1]);
        break;
      default:
        --top;
        stack[top - 1] = Applied(op.kind, stack[top - 1], stack[top]);
    }
  }
  args.scalars[thread] = static_cast<float>(stack[0]);
}

constexpr int kRoundThreads = 256;
constexpr int kRoundWidth = 4;  // elements of a thread: those of one call of Philox

// The bf16 toward 0 from x or, with a probability of their distance in 2^-16 of the gap, the next one away
// from 0: `word` has 16 random bits. Infinities and NaN stay.
__device__ __forceinline__ BF16 RoundedAtRandom(float x, uint32_t word) {
  const uint32_t bits = __float_as_uint(x);
  if ((bits & 0x7F800000u) == 0x7F800000u) return FromFloat<BF16>(x);
  return {static_cast<uint16_t>((bits + (word >> 16)) >> 16)};
}

__global__ void RoundKernel(const RoundArgs args) {
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * kRoundThreads + threadIdx.x) * kRoundWidth;
  if (at >= args.elements) return;
  const PhiloxKey key = {static_cast<uint64_t>(args.rng[0]), args.stream, static_cast<uint32_t>(*args.step)};
  const PhiloxWords words = Philox(key, static_cast<uint64_t>(args.first + at) / kRoundWidth);
  BF16* const to = static_cast<BF16*>(args.bf16);
  Pack<BF16, kRoundWidth> rounded;
#pragma unroll
  for (int j = 0; j < kRoundWidth; ++j) {
    if (at + j < args.elements) rounded.at[j] = RoundedAtRandom(args.values[at + j], words.at[j]);
  }
  if (at + kRoundWidth <= args.elements) {
    StoreSome<BF16, kRoundWidth>(to + at, rounded);
    return;
  }
#pragma unroll
  for (int j = 0; j < kRoundWidth; ++j) {
    if (at + j < args.elements) to[at + j] = rounded.at[j];
  }
}

}  // namespace

int UpdateScalars(const StepScalars& formulas, const UpdateScalarsArgs& args, StreamHandle stream) {
  static_assert(2 * kMaxStepScalars <= kWarp);
  return Launch(&UpdateScalarsKernel, {.block_x = kWarp}, stream, formulas, args);
}

int RoundStochastically(const RoundArgs& args, StreamHandle stream) {
  constexpr int64_t kPerBlock = int64_t{kRoundThreads} * kRoundWidth;
  const int64_t blocks = (args.elements + kPerBlock - 1) / kPerBlock;
  return Launch(&RoundKernel, {.grid_x = static_cast<unsigned>(blocks), .block_x = kRoundThreads}, stream,
                args);
}

}  // namespace ft::cuda
