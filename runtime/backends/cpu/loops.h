// The numeric loops of the CPU backend: plain functions on plain pointers, compiled once per instruction set.
//
// Each family has a table of functions, `k<Family>`, in the namespace of every instruction set. Files that
// define them must not instantiate templates or inline functions of the standard library that have external
// linkage: the linker would keep one copy for all instruction sets, perhaps the one this machine cannot run.
#pragma once

#include "runtime/backends/cpu/isa.h"

namespace ft::cpu {

struct AccumulateLoops;
struct AttentionLoops;
struct AttentionGradLoops;
struct BinaryMapperLoops;
struct ConvertLoops;
struct EmbeddingLoops;
struct Float8Loops;
struct GemmLoops;
struct GradientNormLoops;
struct LossLoops;
struct PrimitiveLoops;
struct RandomLoops;

struct Loops {
  const AccumulateLoops& accumulate;
  const AttentionLoops& attention;
  const AttentionGradLoops& attention_grad;
  const BinaryMapperLoops& binary_mapper;
  const ConvertLoops& convert;
  const EmbeddingLoops& embedding;
  const Float8Loops& float8;
  const GemmLoops& gemm;
  const GradientNormLoops& gradient_norm;
  const LossLoops& loss;
  const PrimitiveLoops& primitives;
  const RandomLoops& random;
};

// `isa` must be usable (isa.h).
const Loops& LoopsFor(Isa isa);

// Puts an emulation in the place of the loops of an instruction set that this machine lacks. Before any
// kernel is made; `loops` must stay.
void SetLoopsForTest(Isa isa, const Loops& loops);

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
