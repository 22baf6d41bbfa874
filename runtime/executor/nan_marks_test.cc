#include "runtime/executor/nan_marks.h"

#include "gtest/gtest.h"

namespace ft {
namespace {

using Origins = NanMarks::Origins;

class NanMarksTest : public testing::Test {
 protected:
  void ExpectAt(int begin, int bytes, const Origins& origins, bool exact) {
    const NanMarks::Known known = marks_.At(memory_ + begin, static_cast<uint64_t>(bytes));
    EXPECT_EQ(known.origins, origins) << begin << ", " << bytes;
    EXPECT_EQ(known.exact, exact) << begin << ", " << bytes;
  }
  void Set(int begin, int bytes, const Origins& origins) {
    marks_.Set(memory_ + begin, static_cast<uint64_t>(bytes), origins);
  }

  const char memory_[100] = {};
  NanMarks marks_;
};

TEST_F(NanMarksTest, NothingIsKnownAtFirst) {
  ExpectAt(0, 10, NanMarks::kNone, false);
  Set(0, 10, NanMarks::kNone);
  ExpectAt(0, 10, NanMarks::kNone, true);
  ExpectAt(3, 4, NanMarks::kNone, true);
  ExpectAt(3, 8, NanMarks::kNone, false);
  marks_.Forget(memory_ + 4, 2);
  ExpectAt(0, 10, NanMarks::kNone, false);
  ExpectAt(0, 4, NanMarks::kNone, true);
  ExpectAt(6, 4, NanMarks::kNone, true);
}

TEST_F(NanMarksTest, PartsMakeAWhole) {
  Set(0, 10, {3, -1, -1});
  Set(10, 5, NanMarks::kNone);
  Set(15, 5, {1, -1, 2});
  ExpectAt(0, 20, {1, -1, 2}, true);
  ExpectAt(0, 21, {1, -1, 2}, false);
}

TEST_F(NanMarksTest, OfAPartOfWhatIsMarkedOneKnowsNotWhetherItHasThem) {
  Set(0, 10, {3, -1, -1});
  ExpectAt(2, 8, {3, -1, -1}, false);
  ExpectAt(0, 10, {3, -1, -1}, true);
}

TEST_F(NanMarksTest, WhatComesLaterTakesThePlaceOfTheOld) {
  Set(0, 30, {0, -1, -1});
  Set(10, 10, {-1, 1, -1});
  ExpectAt(10, 10, {-1, 1, -1}, true);
  ExpectAt(0, 10, {0, -1, -1}, false);  // what was there may have been overwritten
  ExpectAt(20, 10, {0, -1, -1}, false);
  ExpectAt(0, 30, {0, 1, -1}, false);
  Set(0, 30, NanMarks::kNone);
  ExpectAt(0, 30, NanMarks::kNone, true);
}

TEST(NanMarksOriginsTest, TheFirstOfAllCounts) {
  EXPECT_EQ(NanMarks::EarliestOf({5, -1, 2}), 2);
  EXPECT_EQ(NanMarks::AnyOf({5, -1, 2}), 5);
  EXPECT_EQ(NanMarks::EarliestOf(NanMarks::kNone), -1);
  Origins all = {5, -1, 2};
  NanMarks::Merge(all, {4, 7, 3});
  EXPECT_EQ(all, (Origins{4, 7, 2}));
}

}  // namespace
}  // namespace ft
