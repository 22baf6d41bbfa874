#include "runtime/backends/cpu/routines/routines.h"

#include <iterator>

#include "runtime/backends/cpu/routines/attention.h"
#include "runtime/backends/cpu/routines/convert.h"
#include "runtime/backends/cpu/routines/elementwise.h"
#include "runtime/backends/cpu/routines/gemm.h"
#include "runtime/backends/cpu/routines/latent.h"
#include "runtime/backends/cpu/routines/loss.h"
#include "runtime/backends/cpu/routines/optimizer.h"
#include "runtime/backends/cpu/routines/primitives.h"
#include "runtime/backends/cpu/routines/random.h"
#include "runtime/backends/cpu/routines/rows.h"

namespace ft::cpu {
namespace {

#define FT_ROUTINES_OF(isa)                                                                           \
  Routines {                                                                                          \
    isa::kAttention, isa::kAttentionGrad, isa::kConvert, isa::kElementwise, isa::kGemm, isa::kLatent, \
        isa::kLoss, isa::kOptimizer, isa::kPrimitives, isa::kRandom, isa::kRows                       \
  }

#if FT_CPU_X86
// AVX512_BF16 and AMX have instructions for products alone.
#define FT_WITH_PRODUCTS_OF(isa)                                                                  \
  Routines {                                                                                      \
    isa::kAttention, isa::kAttentionGrad, x86_v4::kConvert, x86_v4::kElementwise, isa::kGemm,     \
        x86_v4::kLatent, x86_v4::kLoss, x86_v4::kOptimizer, x86_v4::kPrimitives, x86_v4::kRandom, \
        x86_v4::kRows                                                                             \
  }

constexpr Routines kOfIsa[] = {FT_ROUTINES_OF(generic), FT_ROUTINES_OF(x86_v3), FT_ROUTINES_OF(x86_v4),
                               FT_WITH_PRODUCTS_OF(x86_v4_bf16), FT_WITH_PRODUCTS_OF(x86_v4_amx)};
const Routines* routines_of[] = {&kOfIsa[0], &kOfIsa[1], &kOfIsa[2], &kOfIsa[3], &kOfIsa[4]};
#else
constexpr Routines kOfIsa[] = {FT_ROUTINES_OF(generic)};
const Routines* routines_of[std::size(kIsas)] = {&kOfIsa[0]};
#endif

}  // namespace

const Routines& RoutinesFor(Isa isa) { return *routines_of[static_cast<int>(isa)]; }

void SetRoutinesForTest(Isa isa, const Routines& routines) { routines_of[static_cast<int>(isa)] = &routines; }

}  // namespace ft::cpu
