#include "runtime/data/packing.h"

#include <algorithm>
#include <numeric>

namespace ft {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

// Which of the numbers 0 ... room there are, as a tree: a node says whether anything is below it.
class NumberSet {
 public:
  explicit NumberSet(uint32_t room) {
    while (leaves_ <= room) leaves_ *= 2;
    nodes_.resize(size_t{2} * leaves_);
  }

  void Set(uint32_t number, bool present) {
    size_t node = size_t{leaves_} + number;
    nodes_[node] = present;
    for (node /= 2; node > 0; node /= 2) nodes_[node] = nodes_[2 * node] || nodes_[2 * node + 1];
  }

  // The least that is `number` or more; kNone: there is none.
  uint32_t AtLeast(uint32_t number) const {
    size_t node = size_t{leaves_} + number;
    while (node > 0 && !nodes_[node]) {
      while (node % 2 == 1) node /= 2;  // the last child: what follows is beside a node above
      if (node == 0) return kNone;
      ++node;
    }
    if (node == 0) return kNone;
    while (node < leaves_) node = nodes_[2 * node] ? 2 * node : 2 * node + 1;
    return static_cast<uint32_t>(node - leaves_);
  }

 private:
  uint32_t leaves_ = 1;
  std::vector<char> nodes_;
};

// Numbers of documents from the longest to the shortest, equally long ones in their order.
std::vector<uint32_t> Descending(absl::Span<const uint32_t> lengths, uint32_t room) {
  std::vector<uint32_t> place(size_t{room} + 2);  // of the first document of a length
  for (const uint32_t length : lengths) ++place[room - length + 1];
  std::partial_sum(place.begin(), place.end(), place.begin());
  std::vector<uint32_t> order(lengths.size());
  for (uint32_t i = 0; i < lengths.size(); ++i) order[place[room - lengths[i]]++] = i;
  return order;
}

// Packs by the room that they have left, those of the same room in the order in which they came to have it.
class OpenPacks {
 public:
  explicit OpenPacks(uint32_t room) : present_(room), first_(size_t{room} + 1, kNone), last_(first_) {}

  void Add(uint32_t pack, uint32_t left) {
    if (left == 0) return;  // full
    if (pack >= next_.size()) next_.resize(size_t{pack} + 1, kNone);
    next_[pack] = kNone;
    if (first_[left] == kNone) {
      first_[left] = pack;
      present_.Set(left, true);
    } else {
      next_[last_[left]] = pack;
    }
    last_[left] = pack;
  }

  // Takes the fullest one with room for `length`, and says how much it has; kNone: there is none.
  uint32_t Take(uint32_t length, uint32_t* left) {
    *left = present_.AtLeast(length);
    if (*left == kNone) return kNone;
    const uint32_t pack = first_[*left];
    first_[*left] = next_[pack];
    if (first_[*left] == kNone) present_.Set(*left, false);
    return pack;
  }

 private:
  NumberSet present_;
  std::vector<uint32_t> first_, last_;  // by the room left
  std::vector<uint32_t> next_;          // behind each pack
};

// pack_of[i]: that of document i, or kNone; packs are renumbered in the order of their first documents.
Packs Collect(const std::vector<uint32_t>& pack_of, uint32_t count) {
  std::vector<uint32_t> number(count, kNone);
  Packs packs;
  packs.begins.assign(size_t{count} + 1, 0);
  uint32_t next = 0;
  for (const uint32_t pack : pack_of) {
    if (pack == kNone) continue;
    if (number[pack] == kNone) number[pack] = next++;
    ++packs.begins[number[pack] + 1];
  }
  std::partial_sum(packs.begins.begin(), packs.begins.end(), packs.begins.begin());
  packs.documents.resize(packs.begins.back());
  std::vector<uint32_t> place(packs.begins.begin(), packs.begins.end() - 1);
  for (uint32_t i = 0; i < pack_of.size(); ++i)
    if (pack_of[i] != kNone) packs.documents[place[number[pack_of[i]]]++] = i;
  return packs;
}

}  // namespace

Packs PackBestFit(absl::Span<const uint32_t> lengths, uint32_t room) {
  std::vector<uint32_t> pack_of(lengths.size(), kNone);
  OpenPacks open(room);
  uint32_t count = 0;
  for (const uint32_t document : Descending(lengths, room)) {
    const uint32_t length = lengths[document];
    if (length == 0) break;  // all that follow are empty
    uint32_t left = 0;
    uint32_t pack = open.Take(length, &left);
    if (pack == kNone) {
      pack = count++;
      left = room;
    }
    pack_of[document] = pack;
    open.Add(pack, left - length);
  }
  return Collect(pack_of, count);
}

}  // namespace ft
