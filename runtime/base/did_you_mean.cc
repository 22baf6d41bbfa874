#include "runtime/base/did_you_mean.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace ft {
namespace {

// The fewest insertions, deletions, replacements and swaps of neighbours that make `b` of `a`, no character
// being touched twice (optimal string alignment).
size_t EditDistance(std::string_view a, std::string_view b) {
  // Distances of the first i characters of `a` to all beginnings of `b`, for i and the two before it.
  std::vector<size_t> row(b.size() + 1), above, above2;
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    above2 = std::exchange(above, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j - 1] + (a[i - 1] != b[j - 1]), above[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], above2[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view NearestName(std::string_view word, absl::Span<const std::string_view> candidates) {
  std::string_view nearest;
  size_t best = std::max<size_t>(1, word.size() / 3) + 1;
  for (std::string_view candidate : candidates) {
    const size_t distance = EditDistance(word, candidate);
    if (distance < best) best = distance, nearest = candidate;
  }
  return nearest;
}

std::string UnknownName(std::string_view what, std::string_view word,
                        absl::Span<const std::string_view> candidates) {
  std::string message = "unknown " + std::string(what) + " '" + std::string(word) + "', ";
  const std::string_view nearest = NearestName(word, candidates);
  if (!nearest.empty()) return message + "did you mean '" + std::string(nearest) + "'?";
  message += "expected one of: ";
  for (size_t i = 0; i < candidates.size(); ++i) message += (i == 0 ? "" : ", ") + std::string(candidates[i]);
  return message;
}

}  // namespace ft
