#include "tools/ftckpt/comparison.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/unused_tensors.h"
#include "runtime/checkpoint/weights.h"
#include "tools/ftckpt/elements.h"

namespace ft::ckpt {
namespace {

constexpr uint64_t kCompareElements = uint64_t{1} << 18;
constexpr std::string_view kHead = "lm_head.weight";

using Names = std::map<std::string_view, size_t>;

Names NamesOf(const TensorSide& side) {
  Names names;
  for (size_t t = 0; t < side.tensors().size(); ++t) names.emplace(side.tensors()[t].name, t);
  return names;
}

// The partner of `name` on a side with these names, under its own name or as one of the two without the
// prefix of the full model.
const size_t* FindPartner(const std::string& name, const Names& names, const Names& aliases) {
  if (const auto found = names.find(name); found != names.end()) return &found->second;
  for (const std::string& alias : HuggingFaceAliases(name)) {
    if (const auto found = names.find(alias); found != names.end()) return &found->second;
  }
  const auto found = aliases.find(name);
  return found == aliases.end() ? nullptr : &found->second;
}

// Whether a tensor without partner on `other` needs none.
bool NeedsNone(const SideTensor& tensor, const TensorSide& own, const TensorSide& other) {
  if (own.is_checkpoint() == other.is_checkpoint()) return false;
  return own.is_checkpoint() ? tensor.of_optimizer : IsIgnoredBuffer(tensor.name);
}

void Measure(double a, double b, TensorDifference& difference) {
  ++difference.differing;
  // Equal infinities do not come here; -0 and 0 do, and NaNs of other bits.
  const double absolute = a == b ? 0 : std::fabs(a - b);
  const double larger = std::max(std::fabs(a), std::fabs(b));
  const double relative = absolute == 0 ? 0 : std::isinf(absolute) ? 1 : absolute / larger;
  const auto raise = [](double& most, double value) {
    if (std::isnan(value) || value > most) most = std::isnan(most) ? most : value;
  };
  raise(difference.absolute, absolute);
  raise(difference.relative, relative);
}

// Names without prefix of the full model, with where the full name stands.
Names ShortNames(const TensorSide& side, std::vector<std::string>& storage) {
  std::vector<std::pair<size_t, size_t>> places;
  for (size_t t = 0; t < side.tensors().size(); ++t) {
    for (std::string& alias : HuggingFaceAliases(side.tensors()[t].name)) {
      places.emplace_back(storage.size(), t);
      storage.push_back(std::move(alias));
    }
  }
  Names names;
  for (const auto& [text, tensor] : places) names.emplace(storage[text], tensor);
  return names;
}

// One pass over A, with B's names.
class Pairer {
 public:
  Pairer(const TensorSide& a, const TensorSide& b)
      : a_(a), b_(b), names_(NamesOf(b)), short_names_(ShortNames(b, storage_)), taken_(b.tensors().size()) {}

  Pairing Pair() {
    std::vector<size_t> alone;
    for (size_t t = 0; t < a_.tensors().size(); ++t) {
      const size_t* partner = FindPartner(a_.tensors()[t].name, names_, short_names_);
      if (partner == nullptr || taken_[*partner]) {
        alone.push_back(t);
        continue;
      }
      taken_[*partner] = true;
      pairing_.pairs.emplace_back(t, *partner);
    }
    for (const size_t t : alone) {
      const std::string& embedding = b_.tied_head();
      if (a_.tensors()[t].name == kHead && !embedding.empty()) {
        pairing_.pairs.emplace_back(t, names_.at(embedding));
      } else if (NeedsNone(a_.tensors()[t], a_, b_)) {
        ++pairing_.left_out;
      } else {
        pairing_.only_a.push_back(t);
      }
    }
    PairRest();
    return std::move(pairing_);
  }

 private:
  void PairRest() {
    const Names names = NamesOf(a_);
    for (size_t t = 0; t < taken_.size(); ++t) {
      if (taken_[t]) continue;
      const std::string& embedding = a_.tied_head();
      if (b_.tensors()[t].name == kHead && !embedding.empty()) {
        pairing_.pairs.emplace_back(names.at(embedding), t);
      } else if (NeedsNone(b_.tensors()[t], b_, a_)) {
        ++pairing_.left_out;
      } else {
        pairing_.only_b.push_back(t);
      }
    }
  }

  const TensorSide& a_;
  const TensorSide& b_;
  std::vector<std::string> storage_;
  const Names names_, short_names_;
  std::vector<bool> taken_;
  Pairing pairing_;
};

}  // namespace

Pairing PairTensors(const TensorSide& a, const TensorSide& b) { return Pairer(a, b).Pair(); }

absl::StatusOr<TensorDifference> CompareTensors(TensorSide& a, size_t in_a, TensorSide& b, size_t in_b) {
  const SideTensor &ta = a.tensors()[in_a], &tb = b.tensors()[in_b];
  TensorDifference difference = {.same_shape = ta.shape == tb.shape, .elements = ta.elements};
  if (!difference.same_shape) return difference;
  const size_t size_a = SizeOf(ta.dtype), size_b = SizeOf(tb.dtype);
  const bool same_type = ta.dtype == tb.dtype;
  const size_t most = std::min(kCompareElements, ta.elements);
  std::vector<std::byte> bytes_a(most * size_a), bytes_b(most * size_b);
  std::vector<double> values_a(most), values_b(most);
  for (uint64_t at = 0; at < ta.elements; at += kCompareElements) {
    const size_t count = std::min(kCompareElements, ta.elements - at);
    FT_RETURN_IF_ERROR(a.Read(in_a, at, count, bytes_a.data()));
    FT_RETURN_IF_ERROR(b.Read(in_b, at, count, bytes_b.data()));
    if (same_type && std::memcmp(bytes_a.data(), bytes_b.data(), count * size_a) == 0) continue;
    Widen(ta.dtype, bytes_a.data(), count, values_a.data());
    Widen(tb.dtype, bytes_b.data(), count, values_b.data());
    for (size_t i = 0; i < count; ++i) {
      const double x = values_a[i], y = values_b[i];
      const bool equal = same_type ? std::memcmp(&bytes_a[i * size_a], &bytes_b[i * size_a], size_a) == 0
                                   : std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y) || x == y ||
                                         (std::isnan(x) && std::isnan(y));
      if (!equal) Measure(x, y, difference);
    }
  }
  return difference;
}

}  // namespace ft::ckpt
