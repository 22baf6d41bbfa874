#include "runtime/backends/cpu/testing/emulated_bf16.h"

#include "runtime/backends/cpu/routines/attention.h"
#include "runtime/backends/cpu/routines/gemm.h"

namespace ft::cpu {
namespace emulated_bf16 {

extern const AttentionRoutines kAttention;
extern const AttentionGradRoutines kAttentionGrad;
extern const GemmRoutines kGemm;

}  // namespace emulated_bf16
namespace emulated_amx {

extern const AttentionRoutines kAttention;
extern const AttentionGradRoutines kAttentionGrad;
extern const GemmRoutines kGemm;

}  // namespace emulated_amx

namespace {

Routines WithProductsOf(const AttentionRoutines& attention, const AttentionGradRoutines& attention_grad,
                        const GemmRoutines& gemm) {
  const Routines& v3 = RoutinesFor(Isa::kX86V3);
  return {attention, attention_grad, v3.convert,    v3.elementwise, gemm,   v3.latent,
          v3.loss,   v3.optimizer,   v3.primitives, v3.random,      v3.rows};
}

}  // namespace

const Routines& EmulatedBf16Routines() {
  static const Routines routines =
      WithProductsOf(emulated_bf16::kAttention, emulated_bf16::kAttentionGrad, emulated_bf16::kGemm);
  return routines;
}

const Routines& EmulatedAmxRoutines() {
  static const Routines routines =
      WithProductsOf(emulated_amx::kAttention, emulated_amx::kAttentionGrad, emulated_amx::kGemm);
  return routines;
}

}  // namespace ft::cpu
