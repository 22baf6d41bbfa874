// Products of bf16 as AVX512_BF16 and AMX make them, on any machine with AVX2 and FMA: the same code,
// compiled with vectors of 16 lanes made of two, and VDPBF16PS and TDPBF16PS of multiply-adds.
#pragma once

#include "runtime/backends/cpu/loops.h"

namespace ft::cpu {

// Everything but products and attention is that of AVX2.
const Loops& EmulatedBf16Loops();
const Loops& EmulatedAmxLoops();

}  // namespace ft::cpu
