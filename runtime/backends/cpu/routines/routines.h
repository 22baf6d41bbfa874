// The numeric loops of the CPU backend: plain functions on plain pointers, compiled once per instruction set.
//
// Each family has a table of functions, `k<Family>`, in the namespace of every instruction set. Files that
// define them must not instantiate templates or inline functions of the standard library that have external
// linkage: the linker would keep one copy for all instruction sets, perhaps the one this machine cannot run.
#pragma once

#include "runtime/backends/cpu/isa.h"

namespace ft::cpu {

struct AttentionRoutines;
struct AttentionGradRoutines;
struct ConvertRoutines;
struct ElementwiseRoutines;
struct GemmRoutines;
struct LatentRoutines;
struct LossRoutines;
struct OptimizerRoutines;
struct PrimitiveRoutines;
struct RandomRoutines;
struct RowRoutines;

struct Routines {
  const AttentionRoutines& attention;
  const AttentionGradRoutines& attention_grad;
  const ConvertRoutines& convert;
  const ElementwiseRoutines& elementwise;
  const GemmRoutines& gemm;
  const LatentRoutines& latent;
  const LossRoutines& loss;
  const OptimizerRoutines& optimizer;
  const PrimitiveRoutines& primitives;
  const RandomRoutines& random;
  const RowRoutines& rows;
};

// `isa` must be usable (isa.h).
const Routines& RoutinesFor(Isa isa);

// Puts an emulation in the place of the routines of an instruction set that this machine lacks. Before any
// kernel is made; `routines` must stay.
void SetRoutinesForTest(Isa isa, const Routines& routines);

#if FT_CPU_X86
#define FT_DECLARE_FOR_EVERY_ISA(Type, name) \
  namespace generic {                        \
  extern const Type name;                    \
  }                                          \
  namespace x86_v3 {                         \
  extern const Type name;                    \
  }                                          \
  namespace x86_v4 {                         \
  extern const Type name;                    \
  }                                          \
  namespace x86_v4_bf16 {                    \
  extern const Type name;                    \
  }                                          \
  namespace x86_v4_amx {                     \
  extern const Type name;                    \
  }
#else
#define FT_DECLARE_FOR_EVERY_ISA(Type, name) \
  namespace generic {                        \
  extern const Type name;                    \
  }
#endif

}  // namespace ft::cpu
