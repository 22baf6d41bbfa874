// The gradients that the compiler and the kernels give, against central differences of the float64 reference.
#pragma once

#include <string>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "runtime/device/kernel.h"
#include "test/gradients/graph_text.h"
#include "test/support/array.h"
#include "test/support/interpreter.h"

namespace mlir::ft::test {

// How a graph is made into a step: differentiation alone, or with the fusions and MLIR's clean-ups around it.
enum class Pipeline { kPlain, kFused };

// A context that knows the dialects of the graph level.
std::unique_ptr<MLIRContext> makeContext();

// Null, with a diagnostic on stderr, when the text is not valid.
OwningOpRef<ModuleOp> parseModule(MLIRContext& context, const std::string& text);

// @forward to @train_step, verified. False, with a diagnostic on stderr, when a pass fails.
bool differentiate(ModuleOp module, Pipeline pipeline);

// The kernels of the CPU backend.
const ::ft::KernelRegistry& cpuKernels();

// Uniform in [-1, 1], rounded to f32 so that kernels and reference see the same numbers.
Array randomArray(Dims dims, uint64_t seed);
// Integers below `limit`.
Array randomIndices(Dims dims, int64_t limit, uint64_t seed);

// Values for all parameters of a module.
NamedArrays randomParameters(ModuleOp module, uint64_t seed);
StepInputs randomInputs(const GraphCase& graph, uint64_t seed);

// Fails the running test where an element of a gradient is further from the differences than
//   kTolerance * largest of its tensor + kCancellation * largest of all gradients + kDifferenceRounding.
//
// The differences are central, h = 1e-5, in float64: truncation is below h^2 = 1e-10 of the loss's third
// derivative and rounding about 1e-16 / h = 1e-11. So what is seen is the kernels' rounding: a chain of at
// most 5 f32 ops, each with sums of at most 71 terms and unit roundoff 2^-24 = 6e-8, gives at most 5 * 71 *
// 6e-8 = 2.1e-5. Some gradients are zero because equal terms cancel (the query's, where there is one key): an
// ulp of the terms remains.
inline constexpr double kTolerance = 2.1e-5;
inline constexpr double kCancellation = 0x1p-23;
inline constexpr double kDifferenceRounding = 1e-10;
void checkGradients(const GraphCase& graph, Pipeline pipeline);

// The step's result for a graph, or a failure of the running test.
absl::StatusOr<StepResult> runStep(ModuleOp module, const NamedArrays& parameters, const StepInputs& inputs);

}  // namespace mlir::ft::test
