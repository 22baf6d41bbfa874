#include "runtime/cost/curve.h"

#include "gtest/gtest.h"

namespace ft {
namespace {

TEST(CurveTest, BetweenPointsTheLogarithmCountsBeyondThemTheEnd) {
  Curve points;
  EXPECT_EQ(ValueAt(points, 5, 7), 7);
  for (const auto& [at, value] : {std::pair(1, 10), std::pair(100, 30), std::pair(200, 20)}) {
    Target::Point* point = points.Add();
    point->set_at(at);
    point->set_value(value);
  }
  EXPECT_EQ(ValueAt(points, 0, 7), 10);
  EXPECT_EQ(ValueAt(points, 1, 7), 10);
  EXPECT_DOUBLE_EQ(ValueAt(points, 10, 7), 20);
  EXPECT_EQ(ValueAt(points, 100, 7), 30);
  EXPECT_EQ(ValueAt(points, 200, 7), 20);
  EXPECT_EQ(ValueAt(points, 1e9, 7), 20);
}

}  // namespace
}  // namespace ft
