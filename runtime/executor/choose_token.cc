#include "runtime/executor/choose_token.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

// 53 bits -> [0, 1).
double UniformAt(uint64_t seed, uint32_t text, int64_t place) {
  const PhiloxBlock words = Philox4x32(seed, kTokenStream, text, static_cast<uint64_t>(place));
  const uint64_t bits = (uint64_t{words[0]} << 32 | words[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

// Ids of those that are drawn from, ascending.
std::vector<int32_t> Candidates(absl::Span<const float> logits, int64_t top_k) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  if (top_k == 0 || top_k >= static_cast<int64_t>(ids.size())) return ids;
  const auto is_likelier = [&](int32_t a, int32_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  };
  std::nth_element(ids.begin(), ids.begin() + top_k, ids.end(), is_likelier);
  ids.resize(static_cast<size_t>(top_k));
  std::sort(ids.begin(), ids.end());
  return ids;
}

absl::Status CheckLogits(absl::Span<const float> logits, float largest) {
  const bool has_nan = std::any_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); });
  if (!has_nan && std::isfinite(largest)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the model's logits are not finite, so no token can be chosen: its weights are no trained ones, or "
      "have "
      "diverged");
}

}  // namespace

absl::StatusOr<int32_t> ChooseToken(absl::Span<const float> logits, const TokenChoice& choice, uint32_t text,
                                    int64_t place) {
  if (logits.empty()) return absl::InvalidArgumentError("there are no logits");
  const auto largest = std::max_element(logits.begin(), logits.end());
  FT_RETURN_IF_ERROR(CheckLogits(logits, *largest));
  if (choice.temperature == 0) return static_cast<int32_t>(largest - logits.begin());
  const std::vector<int32_t> ids = Candidates(logits, choice.top_k);
  const auto weight = [&](int32_t id) {
    return std::exp((static_cast<double>(logits[id]) - static_cast<double>(*largest)) / choice.temperature);
  };
  double sum = 0;
  for (const int32_t id : ids) sum += weight(id);
  const double at = UniformAt(choice.seed, text, place) * sum;
  double below = 0;
  int32_t chosen = static_cast<int32_t>(largest - logits.begin());
  for (const int32_t id : ids) {
    const double share = weight(id);
    if (share == 0) continue;
    chosen = id;
    below += share;
    if (at < below) break;
  }
  return chosen;
}

}  // namespace ft
