#include "runtime/collective/liveness/complaints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace ft {
namespace {

using Complaining = std::pair<size_t, std::vector<int>>;  // a rank, and whom it waited for

Complaints Of(size_t world_size, const std::vector<Complaining>& all) {
  Complaints complaints(world_size);
  for (const auto& [rank, missing] : all) complaints.Add(rank, {missing, "words of " + std::to_string(rank)});
  return complaints;
}

// In every order in which they may come; nothing depends on it while one choice is the best.
void ExpectInEveryOrder(size_t world_size, std::vector<Complaining> all, const std::vector<size_t>& chosen,
                        bool complete) {
  std::sort(all.begin(), all.end());
  do {
    const Complaints complaints = Of(world_size, all);
    EXPECT_EQ(complaints.Complete(), complete);
    EXPECT_EQ(std::count(chosen.begin(), chosen.end(), complaints.Chosen()), 1) << complaints.Chosen();
  } while (std::next_permutation(all.begin(), all.end()));
}

TEST(ComplaintsTest, WhoGotWhatItNeededWaitsForTheNextOne) {
  ExpectInEveryOrder(4, {{0, {2}}, {1, {2}}, {3, {0}}}, {0, 1}, true);
  ExpectInEveryOrder(4, {{0, {1}}, {1, {2}}, {3, {0}}}, {1}, true);
}

TEST(ComplaintsTest, ABrokenConnectionIsAConsequence) {
  ExpectInEveryOrder(4, {{0, {}}, {1, {2}}, {3, {}}}, {1}, true);
  // Of two ranks either may have been the first to see it.
  ExpectInEveryOrder(2, {{0, {}}, {1, {0}}}, {1}, true);
}

TEST(ComplaintsTest, WhoNamesFewerThatWaitThemselvesKnowsBetter) {
  // Where all that have not come are known: rank 3 is a round ahead of the others.
  ExpectInEveryOrder(5, {{0, {2, 4}}, {1, {2, 4}}, {3, {0, 1, 2, 4}}}, {0, 1}, false);
}

TEST(ComplaintsTest, OneRankThatNobodyWaitedForMayYetComplain) {
  ExpectInEveryOrder(3, {{0, {}}, {1, {0}}}, {1}, false);
  ExpectInEveryOrder(3, {{0, {1}}}, {0}, false);
  ExpectInEveryOrder(2, {{0, {}}}, {0}, false);
  ExpectInEveryOrder(2, {{0, {1}}}, {0}, true);
}

TEST(ComplaintsTest, ACircleIsToldByItsFirst) {
  ExpectInEveryOrder(3, {{0, {1}}, {1, {2}}, {2, {0}}}, {0, 1, 2}, true);
  EXPECT_EQ(Of(3, {{2, {0}}, {1, {2}}, {0, {1}}}).Chosen(), 2u);
  EXPECT_EQ(Of(3, {{1, {}}, {0, {}}}).Chosen(), 1u);
}

TEST(ComplaintsTest, TheFirstOfARankCounts) {
  Complaints complaints = Of(3, {{1, {2}}});
  complaints.Add(1, {{0}, "later"});
  complaints.Add(7, {{0}, "of no rank"});
  EXPECT_EQ(complaints.Chosen(), 1u);
  EXPECT_EQ(complaints.WordsOf(1), "words of 1");
  EXPECT_FALSE(complaints.Complete());
  EXPECT_TRUE(Complaints(2).empty());
}

TEST(ComplaintsTest, RanksThatAreNotThereAreNotLookedFor) {
  const Complaints complaints = Of(3, {{0, {-1, 3}}, {1, {2, 99}}});
  EXPECT_TRUE(complaints.Complete());
  EXPECT_EQ(complaints.Chosen(), 1u);
}

TEST(ComplaintsTest, TravelAsText) {
  for (const std::vector<int>& missing : {std::vector<int>{}, {0}, {2, 0, 1}}) {
    const auto read = ParseComplaint(ComplaintText({missing, "timed out, waiting for 3"}), 3);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->missing, missing);
    EXPECT_EQ(read->words, "timed out, waiting for 3");
  }
  EXPECT_EQ(ParseComplaint(" ", 1)->words, "");
  for (const char* nonsense : {"", "1", "3 ", "-1 ", "1,x ", "1;2 ", "99999999999999999999 ", "2147483648 "})
    EXPECT_FALSE(ParseComplaint(nonsense, 3).has_value()) << nonsense;
}

TEST(ComplaintsTest, TheNamesLeaveRoomForTheWords) {
  std::vector<int> missing(100000);
  std::iota(missing.begin(), missing.end(), 0);
  const std::string text = ComplaintText({missing, "words"});
  EXPECT_LT(text.size(), 8u << 10);
  EXPECT_EQ(ParseComplaint(text, 100000)->missing.size(), 1000u);
  EXPECT_EQ(ParseComplaint(text, 100000)->words, "words");
}

}  // namespace
}  // namespace ft
