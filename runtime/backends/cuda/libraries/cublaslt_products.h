// Matrix products through cuBLASLt.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/backends/cuda/driver.h"
#include "runtime/backends/cuda/products.h"

namespace ft::cuda {

struct CublasLtApi;

// On the calling thread's device, whose `properties` these are; `driver` must outlive the products.
//
// How an algorithm is chosen, once per spec and alignment of the operands:
// - by timing what cuBLASLt's heuristics propose, best for speed. Algorithms differ in the order in which
// they add
//   up k, and timings differ a little from run to run, so two runs, or two ranks, can choose differently and
//   then differ in the last bits of results. Within a process a spec has one algorithm.
// - `deterministic`: the first proposal, a function of spec, alignment, workspace, device and version of the
//   library alone.
// In both modes an algorithm that adds up parts of k does so in f32 and in a step of its own: of the
// library's schemes, those that add in the result's buffer or type are left out.
//
// `allow_tf32`: products of f32 tensors may round their operands to 10 bits of precision (tensor cores).
//
// Create and Fuse are for when a plan is loaded and the arena holds nothing yet: what they time, they time on
// values of their own in the operands, which hold zeros afterwards (sample_values.h), the gaps between rows
// included. Create refuses as InvalidArgument: results of a type other than the inputs' or f32, a bias of
// another type than the result.
//
// Errors: FailedPrecondition when cuBLASLt cannot be loaded, Internal when it cannot be set up.
absl::StatusOr<std::unique_ptr<Products>> CreateCublasLtProducts(Driver& driver,
                                                                 const DeviceProperties& properties,
                                                                 bool allow_tf32, bool deterministic);

// With functions of the caller's choice.
absl::StatusOr<std::unique_ptr<Products>> CreateCublasLtProducts(const CublasLtApi& api, Driver& driver,
                                                                 bool allow_tf32, bool deterministic);

}  // namespace ft::cuda
