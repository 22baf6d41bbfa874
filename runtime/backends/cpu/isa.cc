#include "runtime/backends/cpu/isa.h"

#if FT_CPU_X86
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace ft::cpu {

#if FT_CPU_X86
namespace {

// Linux gives a process the state of AMX's tiles when it asks (Documentation/arch/x86/xstate.rst); a kernel
// that does not know them refuses.
bool MayUseTiles() {
  constexpr unsigned long kArchReqXcompPerm = 0x1023, kXfeatureXtiledata = 18;
  static const bool granted = syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtiledata) == 0;
  return granted;
}

}  // namespace
#endif

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
    case Isa::kX86V4Amx:
      return "x86-64-v4+amx";
  }
  return "?";
}

std::optional<Isa> IsaOf(std::string_view name) {
  for (Isa isa : kIsas) {
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
  if (isas.back() == Isa::kX86V4Bf16 && __builtin_cpu_supports("amx-tile") &&
      __builtin_cpu_supports("amx-bf16") && MayUseTiles()) {
    isas.push_back(Isa::kX86V4Amx);
  }
#endif
  return isas;
}

Isa BestIsa() { return UsableIsas().back(); }

}  // namespace ft::cpu
