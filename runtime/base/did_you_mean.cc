#include "runtime/base/did_you_mean.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace ft {
namespace {

// Levenshtein distance, one row at a time.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
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
