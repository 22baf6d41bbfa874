#include "runtime/backends/cpu/loops.h"

#include <iterator>

#include "runtime/kernels/accumulate/cpu_loops.h"
#include "runtime/kernels/attention/cpu_loops.h"
#include "runtime/kernels/binary_mapper/cpu_loops.h"
#include "runtime/kernels/cast/cpu_loops.h"
#include "runtime/kernels/cluster/cpu_loops.h"
#include "runtime/kernels/embedding/cpu_loops.h"
#include "runtime/kernels/gradient_norm/cpu_loops.h"
#include "runtime/kernels/linear_cross_entropy/cpu_loops.h"
#include "runtime/kernels/matmul/cpu_float8_loops.h"
#include "runtime/kernels/matmul/cpu_loops.h"
#include "runtime/kernels/random/cpu_loops.h"

namespace ft::cpu {
namespace {

#define FT_LOOPS_OF(isa)                                                                                     \
  Loops {                                                                                                    \
    isa::kAccumulate, isa::kAttention, isa::kAttentionGrad, isa::kBinaryMapper, isa::kConvert,               \
        isa::kEmbedding, isa::kFloat8Rounding, isa::kGemm, isa::kGradientNorm, isa::kLoss, isa::kPrimitives, \
        isa::kRandom                                                                                         \
  }

#if FT_CPU_X86
// AVX512_BF16 and AMX have instructions for products alone.
#define FT_WITH_PRODUCTS_OF(isa)                                                                        \
  Loops {                                                                                               \
    x86_v4::kAccumulate, isa::kAttention, isa::kAttentionGrad, x86_v4::kBinaryMapper, x86_v4::kConvert, \
        x86_v4::kEmbedding, x86_v4::kFloat8Rounding, isa::kGemm, x86_v4::kGradientNorm, x86_v4::kLoss,  \
        x86_v4::kPrimitives, x86_v4::kRandom                                                            \
  }

constexpr Loops kOfIsa[] = {FT_LOOPS_OF(generic), FT_LOOPS_OF(x86_v3), FT_LOOPS_OF(x86_v4),
                            FT_WITH_PRODUCTS_OF(x86_v4_bf16), FT_WITH_PRODUCTS_OF(x86_v4_amx)};
const Loops* loops_of[] = {&kOfIsa[0], &kOfIsa[1], &kOfIsa[2], &kOfIsa[3], &kOfIsa[4]};
#else
constexpr Loops kOfIsa[] = {FT_LOOPS_OF(generic)};
const Loops* loops_of[std::size(kIsas)] = {&kOfIsa[0]};
#endif

}  // namespace

const Loops& LoopsFor(Isa isa) { return *loops_of[static_cast<int>(isa)]; }

void SetLoopsForTest(Isa isa, const Loops& loops) { loops_of[static_cast<int>(isa)] = &loops; }

}  // namespace ft::cpu
