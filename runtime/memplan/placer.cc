#include "runtime/memplan/placer.h"

#include <algorithm>

#include "runtime/memplan/gap_finder.h"

namespace ft {
namespace {

// 4 bytes each, twice a pair: at most 64 MB.
constexpr uint64_t kMaxNeighbourPairs = uint64_t{1} << 23;

}  // namespace

// Blocks of buffers, sorted by offset within and across blocks; blocks that hold nothing live in a time
// window are skipped.
class Placer::Shelf {
 public:
  // The offset for `range`; `work` grows by the buffers looked at.
  uint64_t FindOffset(const LiveRange& range, Fit fit, uint64_t* work) const {
    GapFinder finder(range.size, fit);
    for (const Block& block : blocks_) {
      ++*work;
      if (block.first > range.last || block.last < range.first) continue;
      *work += block.items.size();
      // Whether two lifetimes meet is a coin toss to the branch predictor, so gather first, without
      // branching.
      uint32_t meeting[kBlockItems];
      size_t count = 0;
      for (uint32_t i = 0; i < block.items.size(); ++i) {
        meeting[count] = i;
        count += (block.items[i].first <= range.last) & (block.items[i].last >= range.first);
      }
      for (size_t i = 0; i < count; ++i) {
        const Item& item = block.items[meeting[i]];
        if (finder.Add(item.begin, item.end)) return finder.Offset();
      }
    }
    return finder.Offset();
  }

  void Insert(const LiveRange& range, uint64_t offset) {
    const Item item{offset, offset + range.size, range.first, range.last};
    auto block = std::partition_point(blocks_.begin(), blocks_.end(),
                                      [&](const Block& b) { return b.items.back().begin <= offset; });
    if (block == blocks_.end()) {
      if (blocks_.empty()) blocks_.emplace_back();
      block = blocks_.end() - 1;
    }
    auto place = std::upper_bound(block->items.begin(), block->items.end(), offset,
                                  [](uint64_t value, const Item& other) { return value < other.begin; });
    block->items.insert(place, item);
    block->Cover(item);
    if (block->items.size() >= kBlockItems) Split(block - blocks_.begin());
  }

 private:
  static constexpr size_t kBlockItems = 128;

  struct Item {
    uint64_t begin, end;
    uint32_t first, last;
  };
  struct Block {
    std::vector<Item> items;
    uint32_t first = std::numeric_limits<uint32_t>::max();  // the earliest first
    uint32_t last = 0;                                      // the latest last

    void Cover(const Item& item) {
      first = std::min(first, item.first);
      last = std::max(last, item.last);
    }
  };

  void Split(size_t index) {
    Block upper, lower;
    std::vector<Item>& items = blocks_[index].items;
    lower.items.assign(items.begin(), items.begin() + items.size() / 2);
    upper.items.assign(items.begin() + items.size() / 2, items.end());
    for (const Item& item : lower.items) lower.Cover(item);
    for (const Item& item : upper.items) upper.Cover(item);
    blocks_[index] = std::move(lower);
    blocks_.insert(blocks_.begin() + index + 1, std::move(upper));
  }

  std::vector<Block> blocks_;
};

Placer::Placer(absl::Span<const LiveRange> ranges) : ranges_(ranges) {
  if (CountMeetings(ranges) <= kMaxNeighbourPairs) neighbours_.emplace(ranges);
}

Placer::~Placer() = default;

uint64_t Placer::OffsetAmongNeighbours(uint32_t buffer, Fit fit, const std::vector<uint64_t>& offsets) {
  scratch_.clear();
  const absl::Span<const uint32_t> neighbours = neighbours_->of(buffer);
  for (uint32_t other : neighbours) {
    if (placed_[other]) scratch_.push_back({offsets[other], offsets[other] + ranges_[other].size});
  }
  // Sorting what was found dominates.
  work_ += 1 + neighbours.size() + 8 * scratch_.size();
  std::sort(scratch_.begin(), scratch_.end(),
            [](const Occupied& a, const Occupied& b) { return a.begin < b.begin; });
  GapFinder finder(ranges_[buffer].size, fit);
  for (const Occupied& occupied : scratch_) {
    if (finder.Add(occupied.begin, occupied.end)) break;
  }
  return finder.Offset();
}

bool Placer::Place(absl::Span<const uint32_t> order, Fit fit, uint64_t limit, Placement* out) {
  out->offsets.assign(ranges_.size(), 0);
  out->height = 0;
  if (neighbours_) placed_.assign(ranges_.size(), 0);
  Shelf shelf;
  for (uint32_t buffer : order) {
    const LiveRange& range = ranges_[buffer];
    const uint64_t offset =
        neighbours_ ? OffsetAmongNeighbours(buffer, fit, out->offsets) : shelf.FindOffset(range, fit, &work_);
    if (neighbours_) {
      placed_[buffer] = 1;
    } else {
      shelf.Insert(range, offset);
    }
    out->offsets[buffer] = offset;
    out->height = std::max(out->height, offset + range.size);
    if (out->height > limit) {
      overflow_ = buffer;
      return false;
    }
  }
  return true;
}

}  // namespace ft
