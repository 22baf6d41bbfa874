#include "runtime/plan/report_text.h"

#include <iterator>

#include "fmt/format.h"
#include "runtime/base/numbers.h"

namespace ft {
namespace {

constexpr const char* kClassNames[] = {"parameters",  "gradients",      "optimizer state",
                                       "activations", "gathered units", "communication staging",
                                       "workspace",   "inputs, outputs"};
static_assert(std::size(kClassNames) == proto::MemoryClass_ARRAYSIZE);

}  // namespace

const char* MemoryClassName(proto::MemoryClass memory_class) { return kClassNames[memory_class]; }

std::string MemoryRow(const char* name, uint64_t bytes) {
  return fmt::format("  {:<24}{:>24}{:>14}\n", name, Grouped(bytes), ShortBytes(bytes));
}

std::string ArenaTable(const char* title, const ArenaReport& arena) {
  std::string text =
      fmt::format("{}, in bytes{}\n", title, arena.peak.empty() ? "" : ", at its peak: " + arena.peak);
  for (size_t i = 0; i < arena.by_class.size(); ++i) text += MemoryRow(kClassNames[i], arena.by_class[i]);
  text += MemoryRow("padding", arena.padding);
  text += MemoryRow("arena", arena.arena_bytes);
  return text;
}

}  // namespace ft
