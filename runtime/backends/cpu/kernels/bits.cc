// sample_bits, bits_kl and bits_kl_grad: a few values per position, computed in f64.
#include <array>
#include <cmath>

#include "fmt/format.h"
#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/routines/convert.h"
#include "runtime/backends/cpu/row_blocks.h"
#include "runtime/base/philox.h"

namespace ft::cpu {
namespace {

constexpr int64_t kCostPerBit = 32;  // of exp and log, in multiply-adds

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// -p ln p - (1 - p) ln(1 - p) for p = sigmoid(x): ln(1 + e^-|x|) + |x| sigmoid(-|x|).
double Entropy(double x) {
  const double magnitude = std::abs(x);
  return std::log1p(std::exp(-magnitude)) + magnitude * Sigmoid(-magnitude);
}

constexpr int64_t kMostBits = 31;  // an index is an i32

// Logits [..., H] of any float type, a row at a time in f32.
class LogitRows {
 public:
  LogitRows(const Routines& routines, const Tensor& logits)
      : to_float_(routines.convert.to_float[FloatIndex(logits.dtype)]),
        data_(logits.data),
        bits_(logits.last()) {}

  void Read(int64_t row, float* result) const { to_float_(data_, row * bits_, bits_, result); }

 private:
  void (*to_float_)(const void* x, int64_t begin, int64_t n, float* result);
  const void* data_;
  int64_t bits_;
};

absl::Status CheckLogits(const Tensor& logits) {
  FT_RETURN_IF_ERROR(CheckFloat(logits, "logits"));
  if (logits.last() >= 1 && logits.last() <= kMostBits) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("takes 1 to {} bits, got {}", kMostBits, logits.last()));
}

double RowKl(const float* logits, int64_t bits) {
  double kl = static_cast<double>(bits) * 0.69314718055994530942;
  for (int64_t h = 0; h < bits; ++h) kl -= Entropy(logits[h]);
  return kl;
}

KernelOr MakeSampleBits(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 2, 1));
  const Tensor &logits = context.in(0), &rng = context.in(1), &index = context.out(0);
  FT_RETURN_IF_ERROR(CheckLogits(logits));
  FT_RETURN_IF_ERROR(CheckSize(rng, "rng", 3, DType::kI64));
  FT_RETURN_IF_ERROR(CheckSize(index, "index", logits.rows(), DType::kI32));
  const int64_t bits = logits.last(), rows = logits.rows();
  FT_ASSIGN_OR_RETURN(const uint32_t stream, RandomStream(context.attributes));
  const int threads = ThreadsFor(context.num_threads, rows * bits * kCostPerBit);
  return MakeKernel(
      [=, x = LogitRows(context.routines, logits), state = rng.as<int64_t>(), result = index.as<int32_t>()] {
        const uint64_t seed = static_cast<uint64_t>(state[0]);
        const uint32_t step = static_cast<uint32_t>(state[1]);
        const uint64_t first = static_cast<uint64_t>(state[2]) * static_cast<uint64_t>(rows * bits);
        ParallelRanges(rows, 64, threads, [&](int64_t begin, int64_t end) {
          for (int64_t t = begin; t < end; ++t) {
            float l[kMostBits];
            x.Read(t, l);
            int32_t code = 0;
            for (int64_t h = 0; h < bits; ++h) {
              const uint64_t element = first + static_cast<uint64_t>(t * bits + h);
              const PhiloxBlock block = Philox4x32(seed, kFirstOpStream + stream, step, element / 4);
              if (double{PhiloxUniform(block[element % 4])} < Sigmoid(l[h])) code |= int32_t{1} << h;
            }
            result[t] = code;
          }
        });
      });
}

KernelOr MakeBitsKl(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  const Tensor &logits = context.in(0), &kl = context.out(0);
  FT_RETURN_IF_ERROR(CheckLogits(logits));
  FT_RETURN_IF_ERROR(CheckSize(kl, "kl", 1));
  FT_ASSIGN_OR_RETURN(const double kappa, FloatIn(context.attributes, "kappa"));
  const int64_t rows = logits.rows(), bits = logits.last();
  const RowBlocks blocks(rows);
  const int threads = ThreadsFor(context.num_threads, rows * bits * kCostPerBit);
  return MakeKernel([=, x = LogitRows(context.routines, logits), result = kl.as<float>()] {
    std::array<double, kReductionBlocks> sums{};
    ParallelFor(blocks.count, threads, [&](int64_t block) {
      for (int64_t row = blocks.Begin(block); row < blocks.Begin(block + 1); ++row) {
        float l[kMostBits];
        x.Read(row, l);
        sums[block] += std::max(0.0, RowKl(l, bits) - kappa);
      }
    });
    double total = 0.0;
    for (double sum : sums) total += sum;
    *result = static_cast<float>(total / static_cast<double>(rows));
  });
}

KernelOr MakeBitsKlGrad(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 2, 1));
  const Tensor &dkl = context.in(0), &logits = context.in(1), &dlogits = context.out(0);
  FT_RETURN_IF_ERROR(CheckSize(dkl, "dkl", 1));
  FT_RETURN_IF_ERROR(CheckLogits(logits));
  FT_RETURN_IF_ERROR(CheckSameShape(dlogits, "dlogits", logits));
  FT_ASSIGN_OR_RETURN(const double kappa, FloatIn(context.attributes, "kappa"));
  const int64_t rows = logits.rows(), bits = logits.last();
  const int threads = ThreadsFor(context.num_threads, rows * bits * kCostPerBit);
  return MakeKernel([=, upstream = dkl.as<float>(), x = LogitRows(context.routines, logits),
                     from_float = context.routines.convert.from_float[FloatIndex(dlogits.dtype)],
                     result = dlogits.data] {
    const double scale = double{*upstream} / static_cast<double>(rows);
    ParallelFor(rows, threads, [&](int64_t row) {
      float l[kMostBits], dl[kMostBits];
      x.Read(row, l);
      const bool above = RowKl(l, bits) > kappa;
      for (int64_t h = 0; h < bits; ++h) {
        const double s = Sigmoid(l[h]);
        dl[h] = above ? static_cast<float>(scale * l[h] * s * (1.0 - s)) : 0.0f;
      }
      from_float(dl, result, row * bits, bits);
    });
  });
}

}  // namespace

void RegisterBits(KernelRegistry& registry, Isa isa) {
  Add<MakeSampleBits>(registry, "sample_bits", isa);
  Add<MakeBitsKl>(registry, "bits_kl", isa);
  Add<MakeBitsKlGrad>(registry, "bits_kl_grad", isa);
}

}  // namespace ft::cpu
