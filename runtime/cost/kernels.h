// What kernels cost on a machine. Each term is one function; docs/targets.md has the formulas and where they
// come from. Times are seconds alone on the device, without the latency of a kernel.
#pragma once

#include <cstdint>

#include "runtime/plan/target.h"

namespace ft {

// Of a product: what it makes, and over how many it sums; of several that a kernel computes side by side,
// each.
struct ProductShape {
  uint64_t rows = 1;
  uint64_t columns = 1;
  uint64_t summed = 1;
  uint64_t count = 1;
};

// The part of a device that a product keeps busy, in (0, 1]. Tiles of the result are computed as many at a
// time as there are multiprocessors; the last wave is seldom full, nor are tiles at the edge. `taken` of the
// multiprocessors belong to others (a collective's). Long sums are split where that fills the device better.
// 1 where the target does not know its multiprocessors. Wave quantization as in NVIDIA's "Matrix
// Multiplication Background User's Guide".
double WavePart(const Target::Products& products, const ProductShape& shape, uint32_t taken);

// k / (k + k0): what a tile loads before it computes weighs more when little is summed. Where rows and
// columns have such extents, times the same of these: edges, and what is packed before it is multiplied.
double SizePart(const Target::Products& products, const ProductShape& shape);

// FLOP/s of such a product: what large ones reach, as long as it is sustained, times the two parts above.
double ProductRate(const Target& target, proto::DType dtype, const ProductShape& shape, uint32_t taken);

// FLOP/s of attention over sequences of `length`, by head size (the nearest that was measured in 16 bits, or
// in fp32) and direction; that of large products where the target has no measurements.
double AttentionRate(const Target& target, proto::DType dtype, uint64_t head_size, uint64_t length,
                     bool is_backward);

// Of kernels that memory holds up.
double MemorySeconds(const Target& target, double bytes);

// The larger of computing and moving bytes, plus the latency of a kernel: of an op whose shapes are not
// looked at.
double KernelSeconds(const Target& target, uint64_t flops, uint64_t bytes, proto::DType dtype);

// A kernel on the host, where it is memory that takes the time; with its latency.
double HostKernelSeconds(const Target& target, uint64_t bytes);

// The part by which a step of so many ranks is longer than that of one alone: all wait for the slowest.
double JitterOf(const Target& target, int ranks);

}  // namespace ft
