// What kernels check when they are created. The compiler has verified the ops already; this keeps a damaged
// or foreign plan from touching memory it must not. All return InvalidArgument with the operand's name and
// what was found.
#pragma once

#include <limits>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/device/kernel.h"

namespace ft {

// Exact numbers of operands (absent ones included) and results.
absl::Status CheckCounts(const KernelOperands& operands, size_t in, size_t out);

// Present, of this type.
absl::Status CheckPresent(const Tensor& tensor, std::string_view name, DType dtype = DType::kF32);

// Present, of this type and number of elements.
absl::Status CheckSize(const Tensor& tensor, std::string_view name, int64_t elements,
                       DType dtype = DType::kF32);

// Present, of a type that is computed with: f32, bf16 or f16.
absl::Status CheckFloat(const Tensor& tensor, std::string_view name);

// The same with this number of elements.
absl::Status CheckFloatSize(const Tensor& tensor, std::string_view name, int64_t elements);

// Present, with the type and the dimensions of `like`.
absl::Status CheckSameShape(const Tensor& tensor, std::string_view name, const Tensor& like);

// Absent, or at the address of `result`, which the kernel then adds to.
absl::Status CheckAccumulator(const Tensor& accumulator, const Tensor& result);

// Present, of this type, with one element at least.
absl::Status CheckNotEmpty(const Tensor& tensor, std::string_view name, DType dtype);

// At least `bytes` of scratch at a multiple of kWorkspaceAlignment; none needed for 0.
inline constexpr size_t kWorkspaceAlignment = 16;
absl::Status CheckWorkspace(const KernelOperands& operands, int64_t bytes);

// Attributes come from the plan as well: whatever a kernel computes with is read through these, so that it is
// bounded before any arithmetic. A product of counts is made by CheckedMul (runtime/base/checked.h).

// A flag attribute, 0 or 1: absent means false.
absl::StatusOr<bool> Flag(const KernelAttributes& attributes, std::string_view name);

// An integer attribute from `low` to `high`, both included.
absl::StatusOr<int64_t> IntIn(const KernelAttributes& attributes, std::string_view name, int64_t low,
                              int64_t high);

// The largest number that attributes hold: what f32 can.
inline constexpr double kMaxReal = std::numeric_limits<float>::max();

// A finite float attribute from `low` to `high`, both included.
absl::StatusOr<double> FloatIn(const KernelAttributes& attributes, std::string_view name,
                               double low = -kMaxReal, double high = kMaxReal);

// The integer attribute `stream` of what draws random numbers: below the streams that others have.
absl::StatusOr<uint32_t> RandomStream(const KernelAttributes& attributes);

// What `rate`, `stream` and the operand rng say of dropout. An element whose word, as runtime/base/philox.h
// numbers them, has upper 24 bits of at least `threshold` is kept, times `factor`; others are 0.
struct DropoutRule {
  const int64_t* rng = nullptr;  // seed, micro-step, rank, of the device's memory; nullptr: no dropout
  uint32_t stream = 0;
  uint32_t threshold = 0;
  float factor = 1.0f;
};
absl::StatusOr<DropoutRule> ReadDropout(const KernelAttributes& attributes, const Tensor& rng);

// The attribute `value` of fill, as an element of this type holds it: an integer for types of integers.
absl::StatusOr<double> FillValue(const KernelAttributes& attributes, DType dtype);

// All of a unit's flat buffer or a slice of it, so that its parameters are known.
absl::Status CheckFlat(const Tensor& tensor, std::string_view name);

}  // namespace ft
