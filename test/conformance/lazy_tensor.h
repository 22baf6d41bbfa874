// Tensors of the sizes that real models have, for tests: their elements are functions of their index, so that
// nothing of them is kept on the host, and a reference looks at those that it needs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"
#include "test/conformance/bench.h"

namespace ft::conformance {

// Distributed as a sum of four uniform numbers is, which is normal but for its tails, with mean 0; each
// rounded to the type. Integers are uniform in [0, limit).
class LazyTensor {
 public:
  static LazyTensor Normal(std::vector<int64_t> dims, uint64_t seed, double deviation,
                           DType dtype = DType::kBF16);
  static LazyTensor Integers(std::vector<int64_t> dims, uint64_t seed, int64_t limit);

  double At(int64_t i) const;
  void Read(int64_t begin, int64_t count, double* values) const;
  int64_t elements() const;
  int64_t last() const { return dims_.back(); }
  const std::vector<int64_t>& dims() const { return dims_; }
  DType dtype() const { return dtype_; }

 private:
  LazyTensor(std::vector<int64_t> dims, uint64_t seed, double scale, DType dtype)
      : dims_(std::move(dims)), seed_(seed), scale_(scale), dtype_(dtype) {}

  std::vector<int64_t> dims_;
  uint64_t seed_;
  double scale_;  // of integers, the limit
  DType dtype_;
};

// Memory of a bench, and what kernels are told of it.
struct Placed {
  std::unique_ptr<Memory> memory;
  Tensor tensor;
  std::string name;
};

absl::StatusOr<Placed> Place(Bench& bench, std::string name, const std::vector<int64_t>& dims, DType dtype);
absl::StatusOr<Placed> PlaceWorkspace(Bench& bench, int64_t bytes);

absl::Status WriteValues(Bench& bench, const LazyTensor& values, const Placed& placed);
// NaN everywhere: what a kernel does not write is found.
absl::Status Spoil(Bench& bench, const Placed& placed);
// `count` elements from number `begin` on; of a float type.
absl::Status ReadElements(Bench& bench, const Placed& placed, int64_t begin, int64_t count, double* values);

// What all of a result comes to.
struct Scan {
  uint64_t hash = 0;        // of its bits
  int64_t not_finite = -1;  // the first such element; -1: none
};
absl::StatusOr<Scan> ScanAll(Bench& bench, const Placed& placed);

// Calls run(begin, end, part) for parts of [0, count), each on a thread of its own; so many parts as returned
// by Parts(count).
int64_t Parts(int64_t count);
void InParallel(int64_t count, const std::function<void(int64_t begin, int64_t end, int64_t part)>& run);

// At most `count` different numbers below `n`, ascending; the first and the last are among them.
std::vector<int64_t> SampleOf(int64_t n, int64_t count, uint64_t seed);

}  // namespace ft::conformance
