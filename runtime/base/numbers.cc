#include "runtime/base/numbers.h"

#include <iterator>

#include "fmt/format.h"

namespace ft {
namespace {

std::string Digits(double value, bool whole) {
  return fmt::format("{:.{}f}", value, whole || value >= 100 ? 0 : value >= 10 ? 1 : 2);
}

// A prefix of base 1024 for bytes and 1000 for the rest.
std::string Short(double value, double base, const char* unit) {
  constexpr const char* kPrefixes[] = {"", "K", "M", "G", "T", "P", "E"};
  size_t power = 0;
  for (; value >= base && power + 1 < std::size(kPrefixes); ++power) value /= base;
  const char* binary = base == 1024 && power > 0 ? "i" : "";
  return fmt::format("{} {}{}{}", Digits(value, power == 0), kPrefixes[power], binary, unit);
}

}  // namespace

std::string Grouped(uint64_t number) {
  std::string digits = fmt::format("{}", number);
  for (int place = static_cast<int>(digits.size()) - 3; place > 0; place -= 3)
    digits.insert(static_cast<size_t>(place), 1, ',');
  return digits;
}

std::string ShortBytes(uint64_t bytes) { return Short(static_cast<double>(bytes), 1024, "B"); }

std::string ShortFlops(uint64_t flops) { return Short(static_cast<double>(flops), 1000, "FLOP"); }

std::string ShortSeconds(double seconds) {
  if (seconds >= 1 || seconds == 0) return Digits(seconds, false) + " s";
  return seconds >= 1e-3 ? Digits(seconds * 1e3, false) + " ms" : Digits(seconds * 1e6, false) + " us";
}

}  // namespace ft
