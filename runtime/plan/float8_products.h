// Which matrix products of a plan round their operands to floats of 8 bits.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/plan/plan.pb.h"

namespace ft {

struct Float8Products {
  std::string recipe;                  // "tensorwise"; empty: none do
  uint64_t products = 0, rounded = 0;  // of the program that trains, else of the first
};
Float8Products Float8ProductsOf(const proto::Plan& plan);

}  // namespace ft
