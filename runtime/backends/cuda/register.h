// The CUDA backend's kernels: every op of dialects/ft/ops.td that computes, and those that the schedule adds.
#pragma once

#include "runtime/backends/cuda/kernel_base.h"

namespace ft::cuda {

void RegisterAttention(KernelTable& table);  // attention, attention_grad
void RegisterDot(KernelTable& table);        // dot, grouped_dot, grouped_dot_grad
void RegisterEmbedding(KernelTable& table);  // embedding, embedding_grad
void RegisterIndex(KernelTable& table);      // gather_elements scatter_add_elements cumsum argsort histogram
void RegisterLatent(KernelTable& table);     // binary_mapper binary_mapper_grad
void RegisterLoss(
    KernelTable& table);  // cross_entropy[_grad], linear_cross_entropy[_grad, _loss_grad], loss_count
void RegisterMatmul(KernelTable& table);
void RegisterMatmulGelu(KernelTable& table);  // matmul_gelu, matmul_gelu_grad
void RegisterMove(KernelTable& table);        // transpose, slice, pad
void RegisterMovement(
    KernelTable& table);  // copy reshape broadcast split concat fill iota zero_padding cast rope
void RegisterRandom(KernelTable& table);  // init_normal init_constant
void RegisterCluster(KernelTable& table);
void RegisterSteps(KernelTable& table);   // accumulate accumulated loss_scale update_scaler
void RegisterSums(KernelTable& table);    // sum_squares clip_coefficient found_inf
void RegisterUpdate(KernelTable& table);  // update update_scalars

void RegisterCudaKernels(KernelTable& table);  // all of these

}  // namespace ft::cuda
