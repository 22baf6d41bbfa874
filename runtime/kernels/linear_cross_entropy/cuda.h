// linear_cross_entropy, its gradients, and both at once: the logits of a chunk of rows at a time, by products
// of the library, and between them our own softmax.
//
// With x of 16 bits the logits and their gradients are of that type too, as in PyTorch under mixed precision:
// tensor cores take nothing else. Losses and softmax are computed in f32 from them. Gradients of f16 are kept
// as large as f16 allows and scaled afterwards in f32, so that a loss scale overflows or vanishes no sooner
// than where it is stored.
#pragma once

#include "runtime/backends/cuda/kernel_base.h"

namespace ft::cuda {

KernelOr MakeLinearCrossEntropy(const KernelContext& context);
KernelOr MakeLinearCrossEntropyGrad(const KernelContext& context);
KernelOr MakeLinearCrossEntropyLossGrad(const KernelContext& context);

// The last one with `chunk` rows at a time, for tests. As many as there are gives what one chunk gives.
KernelOr MakeLinearCrossEntropyLossGrad(const KernelContext& context, int64_t chunk);

}  // namespace ft::cuda
