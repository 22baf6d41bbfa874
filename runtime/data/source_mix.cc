#include "runtime/data/source_mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/numeric/int128.h"

namespace ft {
namespace {

// Families of permutations: each source has the one of its index, the mix the last.
constexpr uint32_t kMixFamily = EpochPermutation::kMaxFamilies - 1;

}  // namespace

absl::StatusOr<std::vector<int64_t>> SharesOf(absl::Span<const double> weights) {
  if (weights.empty()) return std::vector<int64_t>();
  const double largest = *std::max_element(weights.begin(), weights.end());
  double sum = 0;  // of weights that are at most 1, so that it stays finite
  for (const double weight : weights) sum += weight / largest;
  std::vector<int64_t> shares;
  for (const double weight : weights) {
    const double share = weight / largest / sum;
    if (share < kLeastShare) {
      return absl::InvalidArgumentError(fmt::format(
          "the weight {} is less than a billionth of all weights together; leave that entry out", weight));
    }
    shares.push_back(std::llround(share * static_cast<double>(kShareUnit)));
  }
  return shares;
}

// A block as it would be if each source had its places in one piece.
struct SourceMix::Layout {
  size_t places = 0;                    // dealt out so far
  std::array<uint32_t, kBlock> source;  // of a place
  std::array<uint16_t, kBlock> first;   // the first place of the same source
  std::array<int64_t, kBlock> next;     // at the first place of a source: the position that it has next
};

SourceMix::SourceMix(absl::Span<const int64_t> shares, uint64_t seed)
    : ends_(1, 0), order_(kBlock, seed, kMixFamily) {
  for (const int64_t share : shares) ends_.push_back(ends_.back() + share);
}

int64_t SourceMix::Part(int64_t positions, size_t begin, size_t middle, size_t end) const {
  const absl::uint128 all = ends_[end] - ends_[begin], part = ends_[middle] - ends_[begin];
  return static_cast<int64_t>((positions * part + all / 2) / all);
}

// Neither half's number ever falls when `positions` grows, since its part is at most 1: so `after` is never
// less than `before`.
void SourceMix::Deal(size_t begin, size_t end, int64_t before, int64_t after, Layout& layout) const {
  if (before == after) return;
  if (end - begin > 1) {
    const size_t middle = begin + (end - begin) / 2;
    const int64_t had = Part(before, begin, middle, end), has = Part(after, begin, middle, end);
    Deal(begin, middle, had, has, layout);
    return Deal(middle, end, before - had, after - has, layout);
  }
  const size_t place = layout.places;
  layout.next[place] = before;
  for (; before < after; ++before, ++layout.places) {
    layout.source[layout.places] = static_cast<uint32_t>(begin);
    layout.first[layout.places] = static_cast<uint16_t>(place);
  }
}

void SourceMix::Fill(int64_t index, Block& block) const {
  Layout layout;
  Deal(0, num_sources(), index * kBlock, (index + 1) * kBlock, layout);
  for (int64_t i = 0; i < kBlock; ++i) {
    const auto place = static_cast<size_t>(order_.At(index, i));
    block.source[i] = layout.source[place];
    block.position[i] = layout.next[layout.first[place]]++;
  }
  block.index = index;
}

int64_t SourceMix::Before(int64_t block, size_t source) const {
  size_t begin = 0, end = num_sources();
  int64_t positions = block * kBlock;
  while (end - begin > 1) {
    const size_t middle = begin + (end - begin) / 2;
    const int64_t left = Part(positions, begin, middle, end);
    positions = source < middle ? left : positions - left;
    (source < middle ? end : begin) = middle;
  }
  return positions;
}

std::vector<int64_t> SourceMix::Dealt(int64_t positions) const {
  const int64_t index = positions / kBlock;
  std::vector<int64_t> dealt;
  for (size_t source = 0; source < num_sources(); ++source) dealt.push_back(Before(index, source));
  Block block;
  Fill(index, block);
  for (int64_t i = 0; i < positions % kBlock; ++i) ++dealt[block.source[i]];
  return dealt;
}

}  // namespace ft
