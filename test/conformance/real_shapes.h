// The kernels of a training step in the shapes that real models have, once each, and the same scaled down for
// an emulated GPU. What is compared with float64 is a sample: 4 heads, 64 rows, 64 columns. Every element is
// looked at for being finite, and for being the same a second time.
//
// Tolerances. Sums of few roundings are held to case.h's bound, element by element. Where products take
// operands of 16 bits that were computed themselves (probabilities, gradients of scores and logits), each is
// off by up to half a unit of its last place, by 0.29 of it on average: 0.6 * 2^-8 of its value at most for
// bf16. Summed with random signs, as here, such errors stay that part of the sum, row by row: held to be
// below 2^-8 of a row's root mean square with one such rounding and that of the result, 2^-7 with two.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "test/conformance/bench.h"
#include "test/conformance/lazy_tensor.h"

namespace ft::conformance {

// What was found out about results, by name.
struct Finding {
  std::string what = {};   // "dq"
  double of_allowed = 0;   // the largest error by what is allowed; above 1 is wrong
  std::string wrong = {};  // empty, or where and what
};
using Findings = std::vector<Finding>;

struct RealShape {
  std::string name;  // "attention_64x1024x12x64"
  // `twice`: kernels are made and run a second time, and must give the same bits. Errors: the bench's;
  // ResourceExhausted where it has too little memory.
  std::function<absl::StatusOr<Findings>(Bench& bench, bool twice)> run;
};

enum class ShapeScale { kReal, kSmall };
// All of them.
std::vector<RealShape> RealShapes(ShapeScale scale);
std::vector<RealShape> RealAttention(ShapeScale scale);
std::vector<RealShape> RealLoss(ShapeScale scale);

// Compares elements in the two ways above; keeps the worst.
class Judge {
 public:
  explicit Judge(std::string what) { finding_.what = std::move(what); }
  // The error of a row may have a root mean square of `part` of that of what is expected, and of `floor`,
  // which keeps rows out that cancel to nothing.
  void Row(std::span<const double> expected, std::span<const double> got, double part, double floor,
           const std::string& where);
  // case.h: sums of `reduction` terms in f32 of magnitude `scale`, then one rounding to `dtype`.
  void Elements(std::span<const double> expected, std::span<const double> got, double reduction, double scale,
                DType dtype, const std::string& where);
  void Join(const Judge& other);
  const Finding& finding() const { return finding_; }

 private:
  void Take(double of_allowed, const std::function<std::string()>& text);
  Finding finding_;
};

// Kernels that run one after the other.
struct KernelStep {
  std::string op;
  KernelOperands operands;
  KernelAttributes attributes;
};
struct Input {
  const LazyTensor* values;
  const Placed* placed;
};
struct Steps {
  std::vector<KernelStep> kernels;
  std::vector<Input> inputs;
  std::vector<const Placed*> results;
};
// Makes all kernels, then writes inputs and spoils results, then runs the kernels. With `twice` all of that
// again. A finding for each result: of its elements' being finite and, with `twice`, the same.
absl::StatusOr<Findings> RunSteps(Bench& bench, const Steps& steps, bool twice);

}  // namespace ft::conformance
