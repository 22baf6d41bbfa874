#include "runtime/base/stored_parts.h"

#include <gtest/gtest.h>

namespace ft {
namespace {

using Names = std::vector<std::string>;

TEST(StoredPartsTest, Expands) {
  EXPECT_EQ(*ExpandBraces("a.weight"), Names({"a.weight"}));
  EXPECT_EQ(*ExpandBraces("e.{0..2}.w"), Names({"e.0.w", "e.1.w", "e.2.w"}));
  EXPECT_EQ(*ExpandBraces("{9..10}{w1,w3}"), Names({"9w1", "9w3", "10w1", "10w3"}));
  EXPECT_EQ(*ExpandBraces("x{7..7}"), Names({"x7"}));
}

TEST(StoredPartsTest, Refuses) {
  for (const char* pattern : {"", "{}", "a{", "a}", "a{{1..2}}", "a{2..1}", "a{1..}", "a{-1..2}",
                              "a{0..65536}", "{0..999}{0..999}", "a{0..99999999999999999999}", "{a,}"})
    EXPECT_EQ(ExpandBraces(pattern).status().code(), absl::StatusCode::kInvalidArgument) << pattern;
  EXPECT_EQ(ExpandBraces("{0..65535}")->size(), kMostBraceNames);
}

TEST(StoredPartsTest, DivideTheOutermostDimensions) {
  using Shape = std::vector<int64_t>;
  const auto shape_of = [](std::string_view names, Shape shape) {
    return StoredParts(names, shape)->back().shape;
  };
  EXPECT_TRUE(StoredParts("", {4, 2})->empty());
  EXPECT_EQ(shape_of("a", {4, 2}), Shape({4, 2}));
  EXPECT_EQ(shape_of("e.{0..3}", {4, 6, 5}), Shape({6, 5}));
  EXPECT_EQ(shape_of("e.{0..3}.{gate,up}", {4, 6, 5}), Shape({3, 5}));
  EXPECT_EQ(shape_of("{0..1}", {4, 6}), Shape({2, 6}));
  EXPECT_EQ(StoredParts("e.{0..1}.{a,b}", {2, 2, 3})->at(1).name, "e.0.b");
  for (const char* names : {"{0..2}", "{0..7}", "{0..4}"})
    EXPECT_FALSE(StoredParts(names, {4, 5}).ok()) << names;
}

}  // namespace
}  // namespace ft
