#include "runtime/cost/kernels.h"

#include <algorithm>
#include <cmath>

#include "runtime/cost/curve.h"

namespace ft {
namespace {

double Part(double part) { return part == 0 ? 1 : part; }

// Libraries split a long sum among multiprocessors that would have nothing to do: into so many parts, of so
// many each at least.
constexpr uint64_t kMostParts = 4, kLeastSummed = 2048;

uint64_t CeilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

// Of that type the nearest by ratio; nullptr: none was measured.
const Target::Attention* NearestHead(const Target& target, bool f32, uint64_t head_size) {
  const auto distance = [&](const Target::Attention& rates) {
    return std::abs(std::log(static_cast<double>(rates.head_size()) / static_cast<double>(head_size)));
  };
  const Target::Attention* nearest = nullptr;
  for (const Target::Attention& rates : target.attention())
    if (rates.f32() == f32 && (nearest == nullptr || distance(rates) < distance(*nearest))) nearest = &rates;
  return nearest;
}

}  // namespace

double WavePart(const Target::Products& products, const ProductShape& shape, uint32_t taken) {
  if (products.multiprocessors() == 0) return 1;
  const uint64_t all = products.multiprocessors(), left = all > taken ? all - taken : 1;
  const uint64_t tiles = shape.count * CeilDiv(shape.rows, products.tile_rows()) *
                         CeilDiv(shape.columns, products.tile_columns());
  const double full = static_cast<double>(shape.count) * static_cast<double>(shape.rows) *
                      static_cast<double>(shape.columns) /
                      (static_cast<double>(products.tile_rows()) * products.tile_columns());
  double best = 0;
  for (uint64_t parts = 1; parts <= kMostParts && (parts == 1 || shape.summed >= parts * kLeastSummed);
       ++parts) {
    const double waves = static_cast<double>(CeilDiv(tiles * parts, left) * all);
    best = std::max(best, full * static_cast<double>(parts) / waves);
  }
  return best;
}

double SizePart(const Target::Products& products, const ProductShape& shape) {
  const auto part = [](uint64_t extent, double half) {
    const double x = static_cast<double>(std::max<uint64_t>(1, extent));
    return x / (x + half);
  };
  return part(shape.summed, products.half_k()) * part(shape.rows, products.half_rows()) *
         part(shape.columns, products.half_columns());
}

double ProductRate(const Target& target, proto::DType dtype, const ProductShape& shape, uint32_t taken) {
  return RateOf(target, dtype).reached() * Part(target.sustained()) *
         WavePart(target.products(), shape, taken) * SizePart(target.products(), shape);
}

double AttentionRate(const Target& target, proto::DType dtype, uint64_t head_size, uint64_t length,
                     bool is_backward) {
  const double otherwise = RateOf(target, dtype).reached() * Part(target.sustained());
  const Target::Attention* rates = NearestHead(target, dtype == proto::F32, std::max<uint64_t>(1, head_size));
  if (rates == nullptr) return otherwise;
  return ValueAt(is_backward ? rates->backward() : rates->forward(), static_cast<double>(length), otherwise);
}

double MemorySeconds(const Target& target, double bytes) {
  return bytes / ValueAt(target.memory(), bytes, target.memory_bytes_per_s());
}

double KernelSeconds(const Target& target, uint64_t flops, uint64_t bytes, proto::DType dtype) {
  return target.kernel_latency_s() +
         std::max(static_cast<double>(flops) / (RateOf(target, dtype).reached() * Part(target.sustained())),
                  MemorySeconds(target, static_cast<double>(bytes)));
}

double HostKernelSeconds(const Target& target, uint64_t bytes) {
  double rate = target.host_memory_bytes_per_s();
  // The host of a CPU is the device. Host memory keeps up with the link to a GPU at least.
  if (rate == 0) rate = target.cuda() ? target.copies().bytes_per_s() : target.memory_bytes_per_s();
  return target.kernel_latency_s() + static_cast<double>(bytes) / rate;
}

double JitterOf(const Target& target, int ranks) { return ValueAt(target.jitter(), ranks, 0); }

}  // namespace ft
