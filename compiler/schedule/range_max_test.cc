#include "compiler/schedule/range_max.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace ft::compiler {
namespace {

// The same by looking at every number.
struct Plain {
  std::vector<int64_t> values;

  std::optional<size_t> firstAbove(size_t begin, size_t end, int64_t bound) const {
    for (size_t i = begin; i < end; ++i)
      if (values[i] > bound)
        return i;
    return std::nullopt;
  }
  std::optional<size_t> lastAbove(size_t begin, size_t end, int64_t bound) const {
    for (size_t i = end; i-- > begin;)
      if (values[i] > bound)
        return i;
    return std::nullopt;
  }
};

TEST(RangeMaxTest, IsTheSameAsLookingAtEveryNumber) {
  std::mt19937 random(1);
  for (size_t size : {1, 2, 3, 7, 8, 33, 100}) {
    Plain plain;
    for (size_t i = 0; i < size; ++i)
      plain.values.push_back(static_cast<int64_t>(random() % 100) - 50);
    RangeMax tree(plain.values);
    for (int round = 0; round < 300; ++round) {
      size_t begin = random() % size, end = begin + random() % (size - begin + 1);
      int64_t value = static_cast<int64_t>(random() % 60) - 30,
              bound = static_cast<int64_t>(random() % 200) - 100;
      tree.add(begin, end, value);
      for (size_t i = begin; i < end; ++i)
        plain.values[i] += value;
      size_t from = random() % size, to = from + random() % (size - from + 1);
      ASSERT_EQ(tree.firstAbove(from, to, bound), plain.firstAbove(from, to, bound)) << size << " " << round;
      ASSERT_EQ(tree.lastAbove(from, to, bound), plain.lastAbove(from, to, bound)) << size << " " << round;
      ASSERT_EQ(tree.at(from), plain.values[from]);
    }
  }
}

TEST(RangeMaxTest, NothingIsInAnEmptyRow) {
  RangeMax tree({});
  tree.add(0, 0, 5);
  EXPECT_EQ(tree.firstAbove(0, 0, -1), std::nullopt);
  EXPECT_EQ(tree.lastAbove(0, 0, -1), std::nullopt);
}

} // namespace
} // namespace ft::compiler
