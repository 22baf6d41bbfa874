// What is no product: attention, kernels that memory holds up, the latency of a kernel, copies.
#pragma once

#include "absl/status/status.h"
#include "runtime/plan/target.h"
#include "tools/ftexec/calibrate/kernel_bench.h"

namespace ft {

// Each takes about `seconds`, and writes what it finds into `target` with its spread. Errors: the device's
// and the ranks'.

// Of a kernel that hardly does anything.
absl::Status MeasureLatency(KernelBench& bench, double seconds, Target& target);

// At three lengths both ways, causal, in both types, with heads of 64; after MeasureProducts.
absl::Status MeasureAttention(KernelBench& bench, double seconds, Target& target);

// Sums of two tensors, squares of one (a reduction) and copies, by the bytes that they move. After
// MeasureLatency.
absl::Status MeasureMemory(KernelBench& bench, double seconds, Target& target);

// Between host and device, in both directions: the slower counts.
absl::Status MeasureCopies(const CalibrationSession& session, double seconds, Target& target);

// A large product over and over for `seconds`, and what it reaches at the end of what it reached at the
// beginning. After MeasureProducts.
absl::Status MeasureSustained(KernelBench& bench, double seconds, Target& target);

}  // namespace ft
