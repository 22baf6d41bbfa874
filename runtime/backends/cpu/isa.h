// Instruction sets that the CPU loops are compiled for. The best one that the machine has is picked when
// kernels are registered; the others stay usable, so that tests compare them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace ft::cpu {

// The compiler's baseline, AVX2 + FMA, AVX-512, AVX-512 + AVX512_BF16, and AMX's tiles beside those. A
// machine that knows one of them knows those before it. Results differ between them; products of bf16 do most
// in the last two, which round probabilities and the gradients of scores and logits to bf16.
enum class Isa { kGeneric, kX86V3, kX86V4, kX86V4Bf16, kX86V4Amx };
inline constexpr Isa kIsas[] = {Isa::kGeneric, Isa::kX86V3, Isa::kX86V4, Isa::kX86V4Bf16, Isa::kX86V4Amx};

// "generic" is another one on every architecture, and its name says which.
std::string_view Name(Isa isa);
// nullopt for what is no name of one of this architecture's.
std::optional<Isa> IsaOf(std::string_view name);

// Compiled into this program, known to this machine and granted by the system, from the plainest to the best.
// Where there is AMX the process asks for its registers; from then on the system refuses alternate stacks for
// signals that are too small for them.
std::vector<Isa> UsableIsas();
Isa BestIsa();

}  // namespace ft::cpu
