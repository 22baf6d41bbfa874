#include "compiler/shard/names.h"

#include <gtest/gtest.h>

namespace ft::compiler {
namespace {

TEST(NamePatterns, RemembersWhichPatternsMatched) {
  NamePatterns patterns({"h.*", "head", "h.1"});
  ASSERT_NE(patterns.firstUnmatched(), nullptr);
  EXPECT_EQ(*patterns.firstUnmatched(), "h.*");
  EXPECT_TRUE(patterns.matches("h.1")); // the first and the last one
  EXPECT_EQ(*patterns.firstUnmatched(), "head");
  EXPECT_FALSE(patterns.matches("embed"));
  EXPECT_EQ(*patterns.firstUnmatched(), "head");
  EXPECT_TRUE(patterns.matches("head"));
  EXPECT_EQ(patterns.firstUnmatched(), nullptr);
}

TEST(NamePatterns, NoneMatchNothing) {
  NamePatterns patterns({});
  EXPECT_FALSE(patterns.matches(""));
  EXPECT_FALSE(patterns.matches("h.0"));
  EXPECT_EQ(patterns.firstUnmatched(), nullptr);
}

} // namespace
} // namespace ft::compiler
