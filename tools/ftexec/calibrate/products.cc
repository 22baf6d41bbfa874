#include "tools/ftexec/calibrate/products.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "runtime/base/cuda_workspace.h"
#include "runtime/base/status_macros.h"
#include "runtime/cost/kernels.h"

namespace ft {
namespace {

struct Shape {
  int64_t rows, columns, summed;
};
// On processors; a GPU has them four times as wide and long.
constexpr Shape kShapes[] = {{512, 768, 768}, {512, 2304, 768}, {512, 768, 3072},  {2048, 384, 384},
                             {256, 128, 128}, {1024, 256, 64},  {128, 1024, 1024}, {1024, 4096, 256}};
constexpr int64_t kGpuScale = 4;
constexpr int kCallsInAList = 4;  // on other bytes each

// Extents at which half of a rate is reached; 0: it does not matter.
constexpr double kHalves[] = {0, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512};

double TypicalError(const std::vector<TimedProduct>& timed, Target& target) {
  std::map<proto::DType, std::pair<double, int>> logs;  // sum and count of log(FLOP/s reached / parts)
  const auto log_rate = [&](const TimedProduct& product) {
    const ProductShape shape{product.rows, product.columns, product.summed};
    const double flops = 2.0 * static_cast<double>(product.rows) * static_cast<double>(product.columns) *
                         static_cast<double>(product.summed);
    return std::log(flops / product.seconds / SizePart(target.products(), shape) /
                    WavePart(target.products(), shape, 0));
  };
  for (const TimedProduct& product : timed) {
    auto& [sum, count] = logs[product.dtype];
    sum += log_rate(product);
    ++count;
  }
  double squares = 0;
  for (const TimedProduct& product : timed) {
    const auto& [sum, count] = logs[product.dtype];
    squares += std::pow(log_rate(product) - sum / count, 2);
  }
  for (const auto& [dtype, log] : logs) {
    Target::Rate* rate = dtype == proto::BF16  ? target.mutable_bf16()
                         : dtype == proto::F16 ? target.mutable_f16()
                                               : target.mutable_f32();
    rate->set_reached(std::exp(log.first / log.second));
  }
  return std::sqrt(squares / static_cast<double>(timed.size()));
}

absl::Status AddProduct(KernelBench& bench, DType dtype, const Shape& shape, bool transposed) {
  // x w, and x' w: what forward passes have, and the gradient of a weight.
  const auto [m, n, k] = shape;
  const Tensor x = bench.Take(dtype, transposed ? std::vector<int64_t>{k, m} : std::vector<int64_t>{m, k});
  const Tensor w = bench.Take(dtype, {k, n}), y = bench.Take(dtype, {m, n});
  KernelAttributes attributes;
  attributes.Add("transpose_a", int64_t{transposed});
  attributes.Add("transpose_b", int64_t{0});
  return bench.Add(
      "matmul",
      {.in = {x, w, Tensor(), Tensor()}, .out = {y}, .workspace = bench.Scratch(0, cuda_workspace::Matmul())},
      attributes);
}

Shape ShapeFor(const KernelBench& bench, const Shape& shape) {
  const int64_t scale = bench.session().is_cpu() ? 1 : kGpuScale;
  return {shape.rows * scale, shape.columns * scale, shape.summed * scale};
}

}  // namespace

double FitProducts(const std::vector<TimedProduct>& timed, Target& target) {
  double least = std::numeric_limits<double>::infinity();
  Target best = target;
  Target tried = target;
  for (const double rows : kHalves)
    for (const double columns : kHalves)
      for (const double summed : kHalves) {
        tried.mutable_products()->set_half_rows(rows);
        tried.mutable_products()->set_half_columns(columns);
        tried.mutable_products()->set_half_k(summed);
        const double error = TypicalError(timed, tried);
        // Of forms that are as good, the one that says less.
        if (error >= least * (1 - 1e-9)) continue;
        least = error;
        best = tried;
      }
  target = best;
  return least;
}

absl::Status MeasureProducts(KernelBench& bench, double seconds, Target& target) {
  std::vector<TimedProduct> timed;
  std::vector<double> spreads;
  const double each = seconds / (2 * 2 * std::size(kShapes));
  for (const DType dtype : {DType::kF32, DType::kBF16})
    for (const Shape& nominal : kShapes)
      for (const bool transposed : {false, true}) {
        const Shape shape = ShapeFor(bench, nominal);
        for (int i = 0; i < kCallsInAList; ++i)
          FT_RETURN_IF_ERROR(AddProduct(bench, dtype, shape, transposed));
        FT_ASSIGN_OR_RETURN(const Sample sample, bench.Time(each));
        timed.push_back(
            {.dtype = static_cast<proto::DType>(dtype),
             .rows = static_cast<uint64_t>(shape.rows),
             .columns = static_cast<uint64_t>(shape.columns),
             .summed = static_cast<uint64_t>(shape.summed),
             .seconds = std::max(sample.seconds - target.kernel_latency_s(), sample.seconds / 10)});
        spreads.push_back(sample.spread);
      }
  const double error = FitProducts(timed, target);
  *target.mutable_f16() = target.bf16();
  Target::Measured* measured = target.mutable_measured();
  measured->add_dtypes(proto::F32);
  measured->add_dtypes(proto::BF16);
  const double spread = MiddleOf(spreads);
  // Not std::hypot, which wants glibc 2.35.
  measured->set_products(std::min(kMostSpread, std::sqrt(error * error + spread * spread)));
  return absl::OkStatus();
}

absl::Status AddReference(KernelBench& bench) {
  // Of the type that takes a GPU the most power.
  const DType dtype = bench.session().is_cpu() ? DType::kF32 : DType::kBF16;
  for (int i = 0; i < kCallsInAList; ++i)
    FT_RETURN_IF_ERROR(AddProduct(bench, dtype, ShapeFor(bench, kShapes[1]), false));
  return absl::OkStatus();
}

absl::StatusOr<Sample> TimeReference(KernelBench& bench, double seconds) {
  FT_RETURN_IF_ERROR(AddReference(bench));
  return bench.Time(seconds);
}

}  // namespace ft
