#include "runtime/base/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace ft {
namespace {

TEST(MatchesGlob, WithoutWildcardsTheWholeName) {
  EXPECT_TRUE(MatchesGlob("h.0", "h.0"));
  EXPECT_FALSE(MatchesGlob("h.0", "h.00"));
  EXPECT_FALSE(MatchesGlob("h.0", "h."));
  EXPECT_FALSE(MatchesGlob("h.0", "hx0"));  // a dot is a dot
  EXPECT_FALSE(MatchesGlob("h.0", "H.0"));
  EXPECT_TRUE(MatchesGlob("", ""));
  EXPECT_FALSE(MatchesGlob("", "h"));
}

TEST(MatchesGlob, AQuestionMarkIsOneCharacter) {
  EXPECT_TRUE(MatchesGlob("h.?", "h.7"));
  EXPECT_FALSE(MatchesGlob("h.?", "h.17"));
  EXPECT_FALSE(MatchesGlob("h.?", "h."));
  EXPECT_TRUE(MatchesGlob("??", "??"));
  EXPECT_FALSE(MatchesGlob("?", ""));
}

TEST(MatchesGlob, AStarIsAnyText) {
  for (const char* name : {"", "h", "transformer.h.0.attn.weight", "*"})
    EXPECT_TRUE(MatchesGlob("*", name)) << name;
  EXPECT_TRUE(MatchesGlob("*.bias", "h.0.bias"));
  EXPECT_TRUE(MatchesGlob("*.bias", ".bias"));
  EXPECT_FALSE(MatchesGlob("*.bias", "h.0.bias.scale"));
  EXPECT_TRUE(MatchesGlob("h.*", "h."));
  EXPECT_FALSE(MatchesGlob("h.*", "gh.0"));
  EXPECT_TRUE(MatchesGlob("**", ""));
  EXPECT_FALSE(MatchesGlob("*?", ""));
  EXPECT_TRUE(MatchesGlob("a**b*", "a.b"));
}

// The first place where the text behind a star fits need not be the right one.
TEST(MatchesGlob, TriesFurtherPlaces) {
  EXPECT_TRUE(MatchesGlob("*ab", "aab"));
  EXPECT_TRUE(MatchesGlob("*aab", "aaaab"));
  EXPECT_TRUE(MatchesGlob("*.attn.*.weight", "h.attn.0.attn.c_proj.weight"));
  EXPECT_TRUE(MatchesGlob("a*b?d", "abbbcd"));
  EXPECT_FALSE(MatchesGlob("a*b?d", "abbbccd"));
  EXPECT_FALSE(MatchesGlob("*a*a*a*", "xaxax"));
}

// Time is a product of the lengths: a pattern of many stars against a name that only fails at its end.
TEST(MatchesGlob, ManyStarsTakeNoLongerThanOne) {
  std::string pattern, name(2000, 'a');
  for (int i = 0; i < 200; ++i) pattern += "*a";
  EXPECT_TRUE(MatchesGlob(pattern, name));
  EXPECT_FALSE(MatchesGlob(pattern + "b", name));
}

}  // namespace
}  // namespace ft
