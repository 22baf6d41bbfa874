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

constexpr const char* kClassKeys[] = {"parameters", "gradients", "optimizer_state", "activations",
                                      "gathered",   "staging",   "workspace",       "io"};
static_assert(std::size(kClassKeys) == proto::MemoryClass_ARRAYSIZE);

}  // namespace

const char* MemoryClassName(proto::MemoryClass memory_class) { return kClassNames[memory_class]; }

const char* MemoryClassKey(proto::MemoryClass memory_class) { return kClassKeys[memory_class]; }

std::vector<std::pair<std::string_view, uint64_t>> BytesByKey(const ArenaReport& arena) {
  std::vector<std::pair<std::string_view, uint64_t>> bytes;
  for (size_t i = 0; i < arena.by_class.size(); ++i) bytes.emplace_back(kClassKeys[i], arena.by_class[i]);
  bytes.emplace_back("padding", arena.padding);
  return bytes;
}

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

std::string ArenaLine(const ArenaReport& arena) {
  std::string text;
  const auto add = [&](const char* name, uint64_t bytes) {
    if (bytes > 0) text += fmt::format("{}{} {}", text.empty() ? "" : "; ", name, ShortBytes(bytes));
  };
  for (size_t i = 0; i < arena.by_class.size(); ++i) add(kClassNames[i], arena.by_class[i]);
  add("padding", arena.padding);
  return text;
}

}  // namespace ft
