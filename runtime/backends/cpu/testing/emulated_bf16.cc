#include "runtime/backends/cpu/testing/emulated_bf16.h"

#include "runtime/backends/cpu/routines/attention.h"
#include "runtime/backends/cpu/routines/gemm.h"

namespace ft::cpu {
namespace emulated_bf16 {

extern const AttentionRoutines kAttention;
extern const AttentionGradRoutines kAttentionGrad;
extern const GemmRoutines kGemm;

}  // namespace emulated_bf16

const Routines& EmulatedBf16Routines() {
  const Routines& v3 = RoutinesFor(Isa::kX86V3);
  static const Routines routines = {emulated_bf16::kAttention,
                                    emulated_bf16::kAttentionGrad,
                                    v3.convert,
                                    v3.elementwise,
                                    emulated_bf16::kGemm,
                                    v3.latent,
                                    v3.loss,
                                    v3.norm,
                                    v3.optimizer,
                                    v3.random,
                                    v3.rows};
  return routines;
}

}  // namespace ft::cpu
