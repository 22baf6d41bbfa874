#include "runtime/data/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace ft {
namespace {

using Lengths = std::vector<uint32_t>;

std::vector<std::vector<uint32_t>> Groups(const Packs& packs) {
  std::vector<std::vector<uint32_t>> groups;
  for (int64_t k = 0; k < packs.count(); ++k)
    groups.emplace_back(packs.documents.begin() + packs.begins[k],
                        packs.documents.begin() + packs.begins[k + 1]);
  return groups;
}

// The same by its definition: every pack is looked at for every document.
std::vector<std::vector<uint32_t>> Plainly(const Lengths& lengths, uint32_t room) {
  struct Pack {
    uint32_t left;
    size_t since;  // when it came to have so much
    std::vector<uint32_t> documents;
  };
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < lengths.size(); ++i)
    if (lengths[i] > 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return lengths[a] > lengths[b]; });
  std::vector<Pack> packs;
  size_t now = 0;
  for (const uint32_t document : order) {
    Pack* best = nullptr;
    for (Pack& pack : packs) {
      const bool fits = pack.left >= lengths[document];
      if (fits && (best == nullptr || std::pair(pack.left, pack.since) < std::pair(best->left, best->since)))
        best = &pack;
    }
    if (best == nullptr) best = &packs.emplace_back(Pack{room, 0, {}});
    best->left -= lengths[document];
    best->since = ++now;
    best->documents.push_back(document);
  }
  std::vector<std::vector<uint32_t>> groups;
  for (Pack& pack : packs) {
    std::sort(pack.documents.begin(), pack.documents.end());
    groups.push_back(pack.documents);
  }
  std::sort(groups.begin(), groups.end());
  return groups;
}

TEST(PackingTest, PutsTheLongestFirst) {
  EXPECT_EQ(Groups(PackBestFit(Lengths{3, 7, 5, 0, 2, 10, 1}, 10)),
            (std::vector<std::vector<uint32_t>>{{0, 1}, {2, 4, 6}, {5}}));
  EXPECT_EQ(PackBestFit(Lengths{}, 10).count(), 0);
  EXPECT_EQ(PackBestFit(Lengths{0, 0}, 10).count(), 0);
  EXPECT_EQ(PackBestFit(Lengths{1, 1, 1}, 1).count(), 3);
}

TEST(PackingTest, IsBestFitDecreasing) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const uint32_t room = 1 + random() % 40;
    Lengths lengths(random() % 60);
    for (uint32_t& length : lengths) length = random() % (room + 1);
    EXPECT_EQ(Groups(PackBestFit(lengths, room)), Plainly(lengths, room)) << round;
  }
}

TEST(PackingTest, FillsNearlyAllOfWhatPeopleWrite) {
  std::mt19937 random(3);
  std::lognormal_distribution<double> of(5.5, 1);
  Lengths lengths(200'000);
  uint64_t sum = 0;
  for (uint32_t& length : lengths)
    sum += length = std::min<uint32_t>(2048, 1 + static_cast<uint32_t>(of(random)));
  const Packs packs = PackBestFit(lengths, 2048);
  EXPECT_GT(static_cast<double>(sum) / (2048.0 * static_cast<double>(packs.count())), 0.999);
}

}  // namespace
}  // namespace ft
