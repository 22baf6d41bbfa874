// Executes a function of ft ops with a device's kernels, one op after another, on heap buffers. What a
// compiled plan does with streams and an arena, done plainly: for tests of gradients.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/device/kernel.h"
#include "test/support/array.h"

namespace mlir::ft::test {

struct StepResult {
  double loss = 0;
  NamedArrays gradients;  // of ft.gradient, by parameter
};

// Runs @train_step (or @forward, which gives no gradients): f32 parameters and gradients, i32 tokens and
// targets.
//
// As the executor will, it gives a result the buffer of its tied operand, and the buffer of a reusable
// operand that dies there. Workspaces have exactly the size the op asks for. Fresh buffers and workspaces are
// filled with NaN patterns, and guard bytes behind each are checked after the op.
//
// Errors name the op: no kernel, a kernel that refuses, a value of a parameter or an input that is missing,
// bytes written behind a buffer's end.
absl::StatusOr<StepResult> interpret(func::FuncOp function, const ::ft::KernelRegistry& kernels,
                                     const NamedArrays& parameters, const StepInputs& inputs);

// Attributes of the instruction for this op: its inherent ones by name, an absent unit attribute as 0.
absl::StatusOr<::ft::KernelAttributes> kernelAttributes(Operation* op);

}  // namespace mlir::ft::test
