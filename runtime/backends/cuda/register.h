// The CUDA backend's kernels: every op of dialects/ft/ops.td that computes, and those that the schedule adds.
#pragma once

#include "runtime/backends/cuda/kernel_base.h"

namespace ft::cuda {

void RegisterAccumulate(KernelTable& table);    // accumulate accumulated
void RegisterAttention(KernelTable& table);     // attention attention_grad
void RegisterBinaryMapper(KernelTable& table);  // binary_mapper binary_mapper_grad
void RegisterCast(KernelTable& table);          // cast
void RegisterCluster(KernelTable& table);       // cluster
void RegisterDot(KernelTable& table);           // dot grouped_dot grouped_dot_grad
void RegisterEmbedding(KernelTable& table);     // embedding embedding_grad
void RegisterGradientNorm(KernelTable& table);  // sum_squares clip_coefficient
void RegisterIndex(KernelTable& table);  // gather_elements scatter_add_elements cumsum argsort histogram
void RegisterLinearCrossEntropy(KernelTable& table);  // linear_cross_entropy[_grad _loss_grad]
void RegisterLossCount(KernelTable& table);           // loss_count
void RegisterLossScaling(KernelTable& table);         // loss_scale update_scaler
void RegisterMatmul(KernelTable& table);              // matmul
void RegisterMatmulEpilogues(KernelTable& table);     // matmul_gelu matmul_gelu_grad matmul_bias_grad
void RegisterMove(KernelTable& table);                // transpose slice pad
void RegisterMovement(KernelTable& table);     // copy reshape broadcast split concat fill iota zero_padding
void RegisterRandom(KernelTable& table);       // init_normal init_uniform init_constant
void RegisterRotaryTable(KernelTable& table);  // rotary_table
void RegisterUpdate(KernelTable& table);       // update update_scalars

void RegisterCudaKernels(KernelTable& table);  // all of these

}  // namespace ft::cuda
