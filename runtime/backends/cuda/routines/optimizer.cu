#include "runtime/backends/cuda/routines/gpu.h"
#include "runtime/backends/cuda/routines/optimizer.h"
#include "runtime/backends/cuda/routines/philox.h"
#include "runtime/backends/cuda/routines/store.h"

namespace ft::cuda {
namespace {

constexpr int kUpdateThreads = 256;
constexpr int kWidth = 4;        // elements that a thread works on at once
constexpr int kUpdateAhead = 2;  // times that, read before any is written
constexpr int kUpdateRounds = 4;
constexpr int kPerBlock = kUpdateThreads * kWidth * kUpdateAhead * kUpdateRounds;

// base^exponent for exponent >= 0, within about 2 log2(exponent) roundings.
__device__ inline double Power(double base, int64_t exponent) {
  double result = 1.0;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

// Factors of one step, rounded to f32 once.
struct AdamFactors {
  float sqrt_correction2;  // sqrt(1 - beta2^t)
  float step_size;         // lr / (1 - beta1^t)
  float decay;             // adamw: 1 - lr * weight_decay, or 1; adam: weight_decay, or 0
};

template <bool kDecoupled>
struct AdamRule {
  using Factors = AdamFactors;
  static constexpr int kStates = 2;

  double beta1, beta2, weight_decay;
  float one_minus_beta1, beta2_rounded, one_minus_beta2, eps;

  // By the first lanes of two warps at the same time: the powers take long.
  __device__ __forceinline__ void Prepare(const UpdateArgs& args, bool decays, Factors& factors) const {
    const int64_t t = *args.step + 1;
    const double lr = static_cast<double>(*args.lr);
    if (threadIdx.x == 0) factors.step_size = static_cast<float>(lr / (1.0 - Power(beta1, t)));
    if (threadIdx.x != kWarp) return;
    factors.sqrt_correction2 = static_cast<float>(sqrt(1.0 - Power(beta2, t)));
    if (kDecoupled) {
      factors.decay = decays ? static_cast<float>(1.0 - lr * weight_decay) : 1.0f;
    } else {
      factors.decay = decays ? static_cast<float>(weight_decay) : 0.0f;
    }
  }

  __device__ __forceinline__ void Step(const Factors& f, float clip, float gradient, float& parameter,
                                       float& exp_avg, float& exp_avg_sq) const {
    const float clipped = gradient * clip;
    const float g = kDecoupled ? clipped : clipped + f.decay * parameter;
    const float decayed = kDecoupled ? parameter * f.decay : parameter;
    exp_avg = exp_avg + (g - exp_avg) * one_minus_beta1;
    exp_avg_sq = exp_avg_sq * beta2_rounded + g * g * one_minus_beta2;
    const float denominator = sqrtf(exp_avg_sq) / f.sqrt_correction2 + eps;
    parameter = decayed - f.step_size * (exp_avg / denominator);
  }
};

struct SgdFactors {
  float lr, decay;
};

template <bool kMomentum, bool kNesterov>
struct SgdRule {
  using Factors = SgdFactors;
  static constexpr int kStates = kMomentum ? 1 : 0;

  float momentum, weight_decay;

  __device__ __forceinline__ void Prepare(const UpdateArgs& args, bool decays, Factors& factors) const {
    if (threadIdx.x == 0) factors = {*args.lr, decays ? weight_decay : 0.0f};
  }

  __device__ __forceinline__ void Step(const Factors& f, float clip, float gradient, float& parameter,
                                       float& buffer, float&) const {
    const float g = gradient * clip + f.decay * parameter;
    float step = g;
    if constexpr (kMomentum) {
      buffer = momentum * buffer + g;
      step = kNesterov ? g + momentum * buffer : buffer;
    }
    parameter = parameter - f.lr * step;
  }
};

// The bf16 toward 0 from x or, with a probability of their distance in 2^-16 of the gap, the next one away
// from 0: `word` has 16 random bits. Infinities and NaN stay.
__device__ __forceinline__ BF16 RoundStochastically(float x, uint32_t word) {
  const uint32_t bits = __float_as_uint(x);
  if ((bits & 0x7F800000u) == 0x7F800000u) return FromFloat<BF16>(x);
  return {static_cast<uint16_t>((bits + (word >> 16)) >> 16)};
}

// Four elements from `at` on, as far as `end`; zeros beyond it.
template <typename T>
__device__ __forceinline__ Pack<T, kWidth> LoadFour(const T* from, int64_t at, int64_t end, bool packed) {
  if (packed && at + kWidth <= end) return LoadSome<T, kWidth>(from + at);
  Pack<T, kWidth> pack = {};
#pragma unroll
  for (int j = 0; j < kWidth; ++j) {
    if (at + j < end) pack.at[j] = from[at + j];
  }
  return pack;
}
template <typename T>
__device__ __forceinline__ void StoreFour(T* to, int64_t at, int64_t end, bool packed,
                                          const Pack<T, kWidth>& pack) {
  if (packed && at + kWidth <= end) {
    StoreSome<T, kWidth>(to + at, pack);
    return;
  }
#pragma unroll
  for (int j = 0; j < kWidth; ++j) {
    if (at + j < end) to[at + j] = pack.at[j];
  }
}

template <typename T>
__device__ __forceinline__ void StoreNearest(void* to, int64_t at, int64_t end, bool packed,
                                             const Pack<float, kWidth>& parameter) {
  Pack<T, kWidth> rounded;
#pragma unroll
  for (int j = 0; j < kWidth; ++j) rounded.at[j] = FromFloat<T>(parameter.at[j]);
  StoreFour(static_cast<T*>(to), at, end, packed, rounded);
}

__device__ __forceinline__ void StoreCopy(const UpdateArgs& args, int64_t at, int64_t end, bool packed,
                                          const Pack<float, kWidth>& parameter) {
  if (args.copy == nullptr) return;
  if (args.copy_dtype == DType::kBF16) {
    StoreNearest<BF16>(args.copy, at, end, packed, parameter);
  } else {
    StoreNearest<F16>(args.copy, at, end, packed, parameter);
  }
}

// How the parameter is kept, and what is beside it.
enum class Keeping { kF32, kNearest, kStochastic };

// `element`: of the parameter, at `at` of the slice; a multiple of 4.
template <Keeping kKeeping>
__device__ __forceinline__ void StoreParameter(const UpdateArgs& args, const PhiloxKey& key, int64_t element,
                                               int64_t at, int64_t end, bool packed,
                                               const Pack<float, kWidth>& parameter) {
  if constexpr (kKeeping == Keeping::kStochastic) {
    const PhiloxWords words = Philox(key, static_cast<uint64_t>(element) / 4);
    Pack<BF16, kWidth> rounded;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) rounded.at[j] = RoundStochastically(parameter.at[j], words.at[j]);
    StoreFour(static_cast<BF16*>(args.parameter), at, end, packed, rounded);
  } else if constexpr (kKeeping == Keeping::kNearest) {
    StoreNearest<BF16>(args.parameter, at, end, packed, parameter);
  } else {
    StoreFour(static_cast<float*>(args.parameter), at, end, packed, parameter);
    StoreCopy(args, at, end, packed, parameter);
  }
}

// The segment of this block: the last that begins at it or before.
__device__ __forceinline__ int SegmentOf(const SegmentBatch& batch, int block) {
  int low = 0, high = batch.count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (batch.first_block[middle] <= block) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// Of a step that is not applied: the copy of the parameter as it is. Where parameters live in host memory the
// copy is a fresh buffer, which goes there next. [begin, end): elements of this block's segment from its
// first on.
__device__ __forceinline__ void RefreshCopy(const UpdateArgs& args, int64_t begin, int64_t end, bool packed) {
  if (args.copy == nullptr) return;
#pragma unroll 1
  for (int offset = static_cast<int>(threadIdx.x) * kWidth; offset < kPerBlock;
       offset += kUpdateThreads * kWidth) {
    const int64_t at = begin + offset;
    if (at >= end) return;
    StoreCopy(args, at, end, packed, LoadFour(static_cast<const float*>(args.parameter), at, end, packed));
  }
}

// A block works on kPerBlock elements of one segment. `packed`: all addresses allow four elements at once.
// P: the parameter's type.
template <typename Rule, typename G, typename P, Keeping kKeeping>
__global__ __launch_bounds__(kUpdateThreads, 3) void Update(const UpdateArgs args, const Rule rule,
                                                            bool packed, const SegmentBatch batch) {
  constexpr bool kStochastic = kKeeping == Keeping::kStochastic;
  __shared__ typename Rule::Factors shared;
  const float clip = *args.coefficient;
  const int segment = SegmentOf(batch, static_cast<int>(blockIdx.x));
  const int64_t end = batch.end[segment];
  const int64_t begin =
      batch.begin[segment] +
      static_cast<int64_t>(static_cast<int>(blockIdx.x) - batch.first_block[segment]) * kPerBlock;
  packed = packed && begin % kWidth == 0;
  if (clip != clip) {  // the step is not to be applied
    if constexpr (kKeeping == Keeping::kF32) RefreshCopy(args, begin, end, packed);
    return;
  }
  // From an element of the slice to that of the parameter.
  const int64_t shift = (segment == 0 ? batch.skipped : 0) - batch.begin[segment];
  PhiloxKey key = {};
  if constexpr (kStochastic) {
    key = {static_cast<uint64_t>(args.rng[0]), batch.streams[segment], static_cast<uint32_t>(*args.step)};
  }
  const G* gradient = static_cast<const G*>(args.gradient);
  rule.Prepare(args, batch.decays[segment / 32] >> segment % 32 & 1, shared);
  typename Rule::Factors factors = {};
#pragma unroll 1
  for (int round = 0; round < kUpdateRounds; ++round) {
    const int64_t first =
        begin + (static_cast<int64_t>(round) * kUpdateAhead * kUpdateThreads + threadIdx.x) * kWidth;
    Pack<G, kWidth> g[kUpdateAhead];
    Pack<P, kWidth> p[kUpdateAhead];
    Pack<float, kWidth> s0[kUpdateAhead] = {}, s1[kUpdateAhead] = {};
#pragma unroll
    for (int k = 0; k < kUpdateAhead; ++k) {
      const int64_t at = first + k * kUpdateThreads * kWidth;
      g[k] = LoadFour(gradient, at, end, packed);
      p[k] = LoadFour(static_cast<const P*>(args.parameter), at, end, packed);
      if constexpr (Rule::kStates > 0) s0[k] = LoadFour(args.states[0], at, end, packed);
      if constexpr (Rule::kStates > 1) s1[k] = LoadFour(args.states[1], at, end, packed);
    }
    if (round == 0) {
      __syncthreads();  // the first elements are on their way while the factors are made
      factors = shared;
    }
#pragma unroll
    for (int k = 0; k < kUpdateAhead; ++k) {
      const int64_t at = first + k * kUpdateThreads * kWidth;
      if (at >= end) continue;
      Pack<float, kWidth> parameter;
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        parameter.at[j] = ToFloat(p[k].at[j]);
        rule.Step(factors, clip, ToFloat(g[k].at[j]), parameter.at[j], s0[k].at[j], s1[k].at[j]);
      }
      if constexpr (Rule::kStates > 0) StoreFour(args.states[0], at, end, packed, s0[k]);
      if constexpr (Rule::kStates > 1) StoreFour(args.states[1], at, end, packed, s1[k]);
      StoreParameter<kKeeping>(args, key, at + shift, at, end, packed, parameter);
    }
  }
}

bool IsPacked(const UpdateArgs& args) {
  return CanPack<float>(args.gradient, 0) && CanPack<float>(args.parameter, 0) &&
         CanPack<float>(args.states[0], 0) && CanPack<float>(args.states[1], 0) &&
         CanPack<float>(args.copy, 0);
}

template <typename Rule>
int LaunchUpdate(const UpdateArgs& args, const Rule& rule, const SegmentBatch& batch, StreamHandle stream) {
  if (batch.blocks == 0) return 0;
  LaunchShape shape;
  shape.grid_x = static_cast<unsigned>(batch.blocks);
  shape.block_x = kUpdateThreads;
  return WithFloatType(args.gradient_dtype, [&]<typename G>() {
    const auto kernel = args.parameter_dtype == DType::kF32 ? &Update<Rule, G, float, Keeping::kF32>
                        : args.rng == nullptr               ? &Update<Rule, G, BF16, Keeping::kNearest>
                                                            : &Update<Rule, G, BF16, Keeping::kStochastic>;
    return Launch(kernel, shape, stream, args, rule, IsPacked(args), batch);
  });
}

template <bool kDecoupled>
int LaunchAdam(const UpdateArgs& args, const AdamSettings& s, const SegmentBatch& batch,
               StreamHandle stream) {
  AdamRule<kDecoupled> rule;
  rule.beta1 = s.beta1;
  rule.beta2 = s.beta2;
  rule.weight_decay = s.weight_decay;
  rule.one_minus_beta1 = static_cast<float>(1.0 - s.beta1);
  rule.beta2_rounded = static_cast<float>(s.beta2);
  rule.one_minus_beta2 = static_cast<float>(1.0 - s.beta2);
  rule.eps = static_cast<float>(s.eps);
  return LaunchUpdate(args, rule, batch, stream);
}

}  // namespace

bool SegmentBatch::Add(int64_t segment_begin, int64_t segment_end, int64_t before, bool decay,
                       uint32_t stream) {
  if (count == kMost) return false;
  if (count == 0) skipped = before;
  begin[count] = segment_begin;
  end[count] = segment_end;
  first_block[count] = blocks;
  streams[count] = stream;
  if (decay) decays[count / 32] |= 1u << count % 32;
  blocks += static_cast<int>((segment_end - segment_begin + kPerBlock - 1) / kPerBlock);
  ++count;
  return true;
}

int Adam(const UpdateArgs& args, const AdamSettings& settings, const SegmentBatch& batch,
         StreamHandle stream) {
  return settings.decoupled ? LaunchAdam<true>(args, settings, batch, stream)
                            : LaunchAdam<false>(args, settings, batch, stream);
}

int Sgd(const UpdateArgs& args, const SgdSettings& settings, const SegmentBatch& batch, StreamHandle stream) {
  const float momentum = static_cast<float>(settings.momentum);
  const float decay = static_cast<float>(settings.weight_decay);
  if (settings.nesterov) return LaunchUpdate(args, SgdRule<true, true>{momentum, decay}, batch, stream);
  if (settings.momentum != 0.0)
    return LaunchUpdate(args, SgdRule<true, false>{momentum, decay}, batch, stream);
  return LaunchUpdate(args, SgdRule<false, false>{momentum, decay}, batch, stream);
}

}  // namespace ft::cuda
