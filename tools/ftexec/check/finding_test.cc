#include "tools/ftexec/check/finding.h"

#include "gtest/gtest.h"

namespace ft {
namespace {

Finding Failed(const std::string& found) {
  return Failure("data", absl::StatusCode::kNotFound, found, "a file", "give one");
}

TEST(FindingTest, ATableHasALineForEach) {
  EXPECT_EQ(
      TableOf({Ok("plan", "gpt2"), Warning("memory", "9 GiB", "10 GiB", "more"), Failed("none\nat all")}),
      "ok    plan    gpt2\n"
      "warn  memory  9 GiB; needed: 10 GiB; do: more\n"
      "FAIL  data    none\\nat all; needed: a file; do: give one\n"
      "checked 3: 1 ok, 1 warning, 1 failed\n");
}

TEST(FindingTest, TheFirstFailureDecidesTheStatus) {
  EXPECT_TRUE(StatusOf({}).ok());
  EXPECT_TRUE(StatusOf({Ok("a", ""), Warning("b", "", "", "")}).ok());
  const absl::Status status = StatusOf({Ok("a", ""), Failed(""), Failure("c", absl::InternalError("x"))});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "2 of 3 checks failed: data, c");
}

TEST(FindingTest, RanksThatFindTheSameAreOne) {
  const std::vector<Finding> merged = Merge({{Ok("plan", "p"), Ok("data", "d0")},
                                             {Ok("plan", "p"), Failed("no file")},
                                             {Failed("no file"), Ok("plan", "p")},
                                             {Ok("plan", "p"), Failed("empty")},
                                             {Ok("only here", "x")}});
  ASSERT_EQ(merged.size(), 3u);
  EXPECT_EQ(merged[0].check, "plan");
  EXPECT_EQ(merged[0].found, "p");
  EXPECT_EQ(merged[1].verdict, Verdict::kFailure);
  EXPECT_EQ(merged[1].found, "ranks 1,2: no file; rank 3: empty");
  EXPECT_EQ(merged[1].code, absl::StatusCode::kNotFound);
  EXPECT_EQ(merged[2].found, "x");
}

TEST(FindingTest, WhatAllSayNeedsNoRanks) {
  EXPECT_EQ(Merge({{Failed("x")}, {Failed("x")}})[0].found, "x");
  EXPECT_EQ(Merge({{Failed("x")}, {}})[0].found, "x");  // rank 0 says it for all
  EXPECT_EQ(Merge({{}, {Failed("x")}})[0].found, "rank 1: x");
  EXPECT_EQ(Merge({{Ok("data", "d")}, {Failed("x")}})[0].found, "rank 1: x");
  EXPECT_TRUE(Merge({{}, {}}).empty());
}

TEST(FindingTest, AFailureOutweighsAWarning) {
  const std::vector<Finding> merged =
      Merge({{Warning("data", "odd", "", "")}, {Failed("x")}, {Ok("data", "d")}});
  EXPECT_EQ(merged[0].verdict, Verdict::kFailure);
  EXPECT_EQ(merged[0].found, "rank 1: x; rank 0: odd");
}

TEST(FindingTest, ManyDifferentFailuresAreCounted) {
  std::vector<std::vector<Finding>> by_rank;
  for (int rank = 0; rank < 1000; ++rank) by_rank.push_back({Failed("pid " + std::to_string(rank))});
  EXPECT_EQ(Merge(by_rank)[0].found,
            "rank 0: pid 0; rank 1: pid 1; rank 2: pid 2; rank 3: pid 3; and the like on 996 more ranks");
}

TEST(FindingTest, Texts) {
  EXPECT_EQ(BytesText(0), "0 bytes");
  EXPECT_EQ(BytesText(1), "1 byte");
  EXPECT_EQ(BytesText(1536), "1.5 KiB");
  EXPECT_EQ(BytesText(uint64_t{3} << 19), "1.5 MiB");
  EXPECT_EQ(BytesText(uint64_t{5} << 40), "5120.0 GiB");
}

}  // namespace
}  // namespace ft
