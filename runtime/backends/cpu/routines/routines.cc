#include "runtime/backends/cpu/routines/routines.h"

#include "runtime/backends/cpu/routines/attention.h"
#include "runtime/backends/cpu/routines/convert.h"
#include "runtime/backends/cpu/routines/elementwise.h"
#include "runtime/backends/cpu/routines/gemm.h"
#include "runtime/backends/cpu/routines/latent.h"
#include "runtime/backends/cpu/routines/loss.h"
#include "runtime/backends/cpu/routines/norm.h"
#include "runtime/backends/cpu/routines/optimizer.h"
#include "runtime/backends/cpu/routines/random.h"
#include "runtime/backends/cpu/routines/rows.h"

namespace ft::cpu {

#define FT_ROUTINES_OF(isa)                                                                              \
  Routines {                                                                                             \
    isa::kAttention, isa::kConvert, isa::kElementwise, isa::kGemm, isa::kLatent, isa::kLoss, isa::kNorm, \
        isa::kOptimizer, isa::kRandom, isa::kRows                                                        \
  }

const Routines& RoutinesFor(Isa isa) {
  static const Routines plain = FT_ROUTINES_OF(generic);
#if FT_CPU_X86
  static const Routines v3 = FT_ROUTINES_OF(x86_v3);
  static const Routines v4 = FT_ROUTINES_OF(x86_v4);
  if (isa == Isa::kX86V3) return v3;
  if (isa == Isa::kX86V4) return v4;
#endif
  return plain;
}

}  // namespace ft::cpu
