// What loops that drop elements are told when they run.
#pragma once

#include "runtime/device/check.h"
#include "runtime/kernels/random/cpu_loops.h"

namespace ft::cpu {

// Of a tensor of so many elements on each rank.
inline DropoutArgs DropoutOf(const DropoutRule& rule, int64_t elements) {
  return {static_cast<uint64_t>(rule.rng[0]),
          rule.stream,
          static_cast<uint32_t>(rule.rng[1]),
          static_cast<uint64_t>(rule.rng[2]) * static_cast<uint64_t>(elements),
          rule.threshold,
          rule.factor};
}

}  // namespace ft::cpu
