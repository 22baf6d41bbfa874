#include "runtime/collective/nccl/windows.h"

#include <cstdlib>

namespace ft::nccl {
namespace {

// The first with copy engines for gathers (NCCL_CTA_POLICY_ZERO).
constexpr int kFirst = 22800;
// Before it the first gather by copy engines hangs where there are two ranks (NCCL's issue 2241).
constexpr int kFirstForTwo = 23102;

}  // namespace

bool WindowsWork(int version, int ranks) {
  return ranks > 1 && version >= (ranks == 2 ? kFirstForTwo : kFirst);
}

bool WindowsAreOff() {
  const char* const enable = std::getenv("NCCL_WIN_ENABLE");
  if (enable == nullptr || enable[0] == '\0') return false;
  char* end = nullptr;
  const long long number = std::strtoll(enable, &end, 0);  // as NCCL reads it
  return end != enable && number == 0;
}

CtaPolicy CtaPolicyOf(bool gathers) { return gathers ? CtaPolicy::kZero : CtaPolicy::kEfficiency; }

}  // namespace ft::nccl
