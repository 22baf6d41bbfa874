#include "runtime/backends/cpu/testing/emulated_bf16.h"

#include "runtime/kernels/attention/cpu_loops.h"
#include "runtime/kernels/matmul/cpu_loops.h"

namespace ft::cpu {
namespace emulated_bf16 {

extern const AttentionLoops kAttention;
extern const AttentionGradLoops kAttentionGrad;
extern const GemmLoops kGemm;

}  // namespace emulated_bf16
namespace emulated_amx {

extern const AttentionLoops kAttention;
extern const AttentionGradLoops kAttentionGrad;
extern const GemmLoops kGemm;

}  // namespace emulated_amx

namespace {

Loops WithProductsOf(const AttentionLoops& attention, const AttentionGradLoops& attention_grad,
                     const GemmLoops& gemm) {
  const Loops& v3 = LoopsFor(Isa::kX86V3);
  return {v3.accumulate, attention, attention_grad,   v3.binary_mapper, v3.convert,    v3.embedding,
          v3.float8,     gemm,      v3.gradient_norm, v3.loss,          v3.primitives, v3.random};
}

}  // namespace

const Loops& EmulatedBf16Loops() {
  static const Loops loops =
      WithProductsOf(emulated_bf16::kAttention, emulated_bf16::kAttentionGrad, emulated_bf16::kGemm);
  return loops;
}

const Loops& EmulatedAmxLoops() {
  static const Loops loops =
      WithProductsOf(emulated_amx::kAttention, emulated_amx::kAttentionGrad, emulated_amx::kGemm);
  return loops;
}

}  // namespace ft::cpu
