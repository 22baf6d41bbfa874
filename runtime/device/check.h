// What kernels check when they are created. The compiler has verified the ops already; this keeps a damaged
// or foreign plan from touching memory it must not. All return InvalidArgument with the operand's name and
// what was found.
#pragma once

#include <string_view>

#include "absl/status/status.h"
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

// At least `bytes` of scratch; none needed for 0.
absl::Status CheckWorkspace(const KernelOperands& operands, int64_t bytes);

// A flag attribute: absent means false.
absl::StatusOr<bool> Flag(const KernelAttributes& attributes, std::string_view name);

}  // namespace ft
