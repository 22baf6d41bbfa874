#include "compiler/shard/names.h"

#include <gtest/gtest.h>

namespace ft::compiler {
namespace {

TEST(MatchesGlob, WithoutWildcardsTheWholeName) {
  EXPECT_TRUE(matchesGlob("h.0", "h.0"));
  EXPECT_FALSE(matchesGlob("h.0", "h.00"));
  EXPECT_FALSE(matchesGlob("h.0", "h."));
  EXPECT_FALSE(matchesGlob("h.0", "hx0")); // a dot is a dot
  EXPECT_FALSE(matchesGlob("h.0", "H.0"));
  EXPECT_TRUE(matchesGlob("", ""));
  EXPECT_FALSE(matchesGlob("", "h"));
}

TEST(MatchesGlob, AQuestionMarkIsOneCharacter) {
  EXPECT_TRUE(matchesGlob("h.?", "h.7"));
  EXPECT_FALSE(matchesGlob("h.?", "h.17"));
  EXPECT_FALSE(matchesGlob("h.?", "h."));
  EXPECT_TRUE(matchesGlob("??", "??"));
  EXPECT_FALSE(matchesGlob("?", ""));
}

TEST(MatchesGlob, AStarIsAnyText) {
  for (const char *name : {"", "h", "transformer.h.0.attn.weight", "*"})
    EXPECT_TRUE(matchesGlob("*", name)) << name;
  EXPECT_TRUE(matchesGlob("*.bias", "h.0.bias"));
  EXPECT_TRUE(matchesGlob("*.bias", ".bias"));
  EXPECT_FALSE(matchesGlob("*.bias", "h.0.bias.scale"));
  EXPECT_TRUE(matchesGlob("h.*", "h."));
  EXPECT_FALSE(matchesGlob("h.*", "gh.0"));
  EXPECT_TRUE(matchesGlob("**", ""));
  EXPECT_FALSE(matchesGlob("*?", ""));
  EXPECT_TRUE(matchesGlob("a**b*", "a.b"));
}

// The first place where the text behind a star fits need not be the right one.
TEST(MatchesGlob, TriesFurtherPlaces) {
  EXPECT_TRUE(matchesGlob("*ab", "aab"));
  EXPECT_TRUE(matchesGlob("*aab", "aaaab"));
  EXPECT_TRUE(matchesGlob("*.attn.*.weight", "h.attn.0.attn.c_proj.weight"));
  EXPECT_TRUE(matchesGlob("a*b?d", "abbbcd"));
  EXPECT_FALSE(matchesGlob("a*b?d", "abbbccd"));
  EXPECT_FALSE(matchesGlob("*a*a*a*", "xaxax"));
}

// Time is a product of the lengths: a pattern of many stars against a name that only fails at its end.
TEST(MatchesGlob, ManyStarsTakeNoLongerThanOne) {
  std::string pattern, name(2000, 'a');
  for (int i = 0; i < 200; ++i)
    pattern += "*a";
  EXPECT_TRUE(matchesGlob(pattern, name));
  EXPECT_FALSE(matchesGlob(pattern + "b", name));
}

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
