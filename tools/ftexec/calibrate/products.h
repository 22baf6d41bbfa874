// Matrix products: eight shapes in two layouts, and the form of runtime/cost that says best what they took.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "runtime/plan/target.h"
#include "tools/ftexec/calibrate/kernel_bench.h"

namespace ft {

struct TimedProduct {
  proto::DType dtype = proto::F32;
  uint64_t rows = 0, columns = 0, summed = 0;
  double seconds = 0;  // beyond the latency of a kernel
};

// Rates by type and the halves of `target`'s products, so that what the form says is off by the least squares
// of logarithms. Returns the root of their mean: how far a product is off, as a part. `timed` has products of
// at least one type; types that it lacks are left alone.
double FitProducts(const std::vector<TimedProduct>& timed, Target& target);

// Times them, in fp32 and bf16, over about `seconds` together, and writes what they reach into `target`, with
// their spread. `target` knows the latency of a kernel.
absl::Status MeasureProducts(KernelBench& bench, double seconds, Target& target);

// One large product in fp32, to see whether the machine is as fast as it was.
absl::StatusOr<Sample> TimeReference(KernelBench& bench, double seconds);

// What adds that product's commands, for running beside something else.
absl::Status AddReference(KernelBench& bench);

}  // namespace ft
