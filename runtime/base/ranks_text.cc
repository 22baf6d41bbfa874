#include "runtime/base/ranks_text.h"

#include <cstddef>

#include "fmt/format.h"

namespace ft {
namespace {

constexpr size_t kMostParts = 12;  // that are named

}  // namespace

std::string RanksText(const std::vector<int>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  std::string text = "ranks ";
  size_t parts = 0;
  for (size_t i = 0; i < ranks.size(); ++parts) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (parts == kMostParts) return text + fmt::format(" and {} more", ranks.size() - i);
    text += parts == 0 ? "" : ",";
    text += last == i       ? fmt::format("{}", ranks[i])
            : last == i + 1 ? fmt::format("{},{}", ranks[i], ranks[last])
                            : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace ft
