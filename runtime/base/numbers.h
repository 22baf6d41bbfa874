// Numbers for people.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace ft {

// "1,234,567"
std::string Grouped(uint64_t number);

// Three significant digits and a prefix: "1.50 GiB", "12.0 GFLOP", "85.3 ms".
std::string ShortBytes(uint64_t bytes);
std::string ShortFlops(uint64_t flops);
std::string ShortSeconds(double seconds);

// The same number; a NaN without its sign, which says nothing and is printed all the same.
inline double WithoutSignOfNan(double number) {
  return std::isnan(number) ? std::numeric_limits<double>::quiet_NaN() : number;
}

}  // namespace ft
