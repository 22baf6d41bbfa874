#include "runtime/backends/cpu/isa.h"

namespace ft::cpu {

std::string_view Name(Isa isa) {
  switch (isa) {
    case Isa::kGeneric:
      return "generic";
    case Isa::kX86V3:
      return "x86-64-v3";
    case Isa::kX86V4:
      return "x86-64-v4";
  }
  return "?";
}

std::vector<Isa> UsableIsas() {
  std::vector<Isa> isas = {Isa::kGeneric};
#if FT_CPU_X86
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v3")) isas.push_back(Isa::kX86V3);
  if (__builtin_cpu_supports("x86-64-v4")) isas.push_back(Isa::kX86V4);
#endif
  return isas;
}

Isa BestIsa() { return UsableIsas().back(); }

}  // namespace ft::cpu
