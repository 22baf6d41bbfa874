// Calling a kernel with buffers of its own, and watching what is beside them.
#pragma once

#include "compiler/codegen/testing/tensors.h"

namespace ft::compiler::testing {

/// Results as `call` wrote them, filled with a pattern before. Operands are inputs, results and buffers of so
/// many bytes, aligned to 16 bytes and no more, and streams, streamOf(draw) each. Empty where a byte beside a
/// buffer changed or an input did.
std::vector<std::string> runGuarded(const std::vector<HostTensor> &inputs,
                                    llvm::ArrayRef<mlir::RankedTensorType> results,
                                    llvm::ArrayRef<int64_t> partialBytes, unsigned draws,
                                    llvm::function_ref<void(void *const *operands)> call);

uint32_t streamOf(unsigned draw);

/// NaN of any payload is one.
bool sameBits(const HostTensor &a, const HostTensor &b);

} // namespace ft::compiler::testing
