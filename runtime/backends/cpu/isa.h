// Instruction sets that the CPU routines are compiled for. The best one that the machine has is picked when
// kernels are registered; the others stay usable, so that tests compare them.
#pragma once

#include <string_view>
#include <vector>

namespace ft::cpu {

enum class Isa { kGeneric, kX86V3, kX86V4 };  // the compiler's baseline, AVX2 + FMA, AVX-512

std::string_view Name(Isa isa);

// Compiled into this program and known to this machine, from the plainest to the best.
std::vector<Isa> UsableIsas();
Isa BestIsa();

}  // namespace ft::cpu
