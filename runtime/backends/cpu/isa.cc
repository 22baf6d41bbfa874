#include "runtime/backends/cpu/isa.h"

namespace ft::cpu {

std::string_view Name(Isa isa) {
  switch (isa) {
    case Isa::kGeneric:
#if FT_CPU_X86
      return "generic";
#elif defined(__aarch64__)
      return "generic-aarch64";
#else
      return "generic-other";
#endif
    case Isa::kX86V3:
      return "x86-64-v3";
    case Isa::kX86V4:
      return "x86-64-v4";
    case Isa::kX86V4Bf16:
      return "x86-64-v4+bf16";
  }
  return "?";
}

std::optional<Isa> IsaOf(std::string_view name) {
  for (Isa isa : {Isa::kGeneric, Isa::kX86V3, Isa::kX86V4, Isa::kX86V4Bf16}) {
    if (name == Name(isa)) return isa;
  }
  return std::nullopt;
}

std::vector<Isa> UsableIsas() {
  std::vector<Isa> isas = {Isa::kGeneric};
#if FT_CPU_X86
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v3")) isas.push_back(Isa::kX86V3);
  // These also ask whether the system saves the registers.
  if (__builtin_cpu_supports("x86-64-v4")) isas.push_back(Isa::kX86V4);
  if (isas.back() == Isa::kX86V4 && __builtin_cpu_supports("avx512bf16")) isas.push_back(Isa::kX86V4Bf16);
#endif
  return isas;
}

Isa BestIsa() { return UsableIsas().back(); }

}  // namespace ft::cpu
