#include "runtime/postmortem/rank_report.h"

#include <random>
#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace ft {
namespace {

RankReport Full() {
  RankReport report;
  report.rank = 3;
  report.world_size = 4;
  report.local_rank = 1;
  report.node = 1;
  report.host = "node-b";
  report.pid = 4711;
  report.attempt = 2;
  report.run_id = "job-17";
  report.meeting = "0123456789abcdef";
  report.plan = "plan.bin";
  report.plan_hash = "fedcba9876543210";
  report.mesh = Mesh{2, 2};
  report.started = 1.7e9;
  report.taken = 1.7e9 + 12.5;
  report.cause = "train_step, instruction 12: timed out \x1b[2J\xff";
  report.status = "UNAVAILABLE";
  report.origin = ReportOrigin::kPeer;
  report.blamed_rank = 1;
  report.blamed_is_lost = true;
  report.signal = 15;
  report.missing_ranks = {0, 2};
  report.activity = {.name = "computing", .step = 41, .micro_step = 1, .steps_done = -1, .seconds = 5.25};
  report.saving = {.name = "saving", .step = -1, .micro_step = -1, .steps_done = 40, .seconds = 0.5};
  report.program = "train_step";
  report.runs = 43;
  report.program_seconds = 5.125;
  ReportedStream stream{.name = "gather", .is_followed = true, .finished = 99};
  ReportedInstruction current;
  current.program = "train_step";
  current.instruction = 12;
  current.title = "all_gather h.1";
  current.category = "forward";
  current.layer = "h.1";
  current.axis = "shard";
  current.shapes = "f32[4] -> f32[8]";
  current.bytes = 32;
  current.began_ago = 5;
  stream.current = current;
  current.began_ago = -1;
  current.ended_ago = 6;
  current.took = 0.25;
  stream.recent = {current, current};
  report.streams = {stream, {.name = "compute"}};
  report.collectives = {{"gather", "shard", 57, 56}, {"reduce", "", 3, 3}};
  return report;
}

TEST(RankReportTest, ReadsWhatItWrites) {
  const std::string text = RankReportText(Full());
  const absl::StatusOr<RankReport> read = ParseRankReport(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(RankReportText(*read), text);
  EXPECT_EQ(read->rank, 3);
  EXPECT_EQ(read->mesh, (Mesh{2, 2}));
  EXPECT_EQ(read->blamed_rank, 1);
  EXPECT_EQ(read->missing_ranks, (std::vector<int>{0, 2}));
  EXPECT_EQ(read->origin, ReportOrigin::kPeer);
  EXPECT_DOUBLE_EQ(read->taken, 1.7e9 + 12.5);
  EXPECT_EQ(read->saving.steps_done, 40);
  ASSERT_EQ(read->streams.size(), 2u);
  ASSERT_TRUE(read->streams[0].current.has_value());
  EXPECT_EQ(read->streams[0].current->began_ago, 5);
  EXPECT_EQ(read->streams[0].recent[1].took, 0.25);
  EXPECT_FALSE(read->streams[1].current.has_value());
  EXPECT_EQ(read->collectives[0].entered, 57u);
}

TEST(RankReportTest, ARankThatHasHardlyBegunHasAReportToo) {
  RankReport report;
  report.cause = "the plan is missing";
  const absl::StatusOr<RankReport> read = ParseRankReport(RankReportText(report));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->mesh.has_value());
  EXPECT_TRUE(read->streams.empty());
  EXPECT_EQ(read->cause, report.cause);
}

// Every field, at every depth, replaced with values of all kinds: refused or taken, in words of one line.
void TryEverywhere(nlohmann::json& whole, nlohmann::json& at, int& refused) {
  const nlohmann::json kept = at;
  for (const auto& bad : {nlohmann::json(nullptr), nlohmann::json(-1), nlohmann::json(1e300),
                          nlohmann::json("x"), nlohmann::json(true), nlohmann::json::array({1, "x"}),
                          nlohmann::json::object({{"a", 1}}), nlohmann::json(18446744073709551615u)}) {
    at = bad;
    const absl::StatusOr<RankReport> read = ParseRankReport(whole.dump());
    if (read.ok()) {
      EXPECT_TRUE(ParseRankReport(RankReportText(*read)).ok());
      continue;
    }
    ++refused;
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(read.status().message().find('\n'), absl::string_view::npos);
  }
  at = kept;
  if (at.is_structured())
    for (nlohmann::json& below : at) TryEverywhere(whole, below, refused);
}

TEST(RankReportTest, NothingInAReportIsTakenForWhatItIsNot) {
  nlohmann::json whole = nlohmann::json::parse(RankReportText(Full()));
  int refused = 0;
  TryEverywhere(whole, whole, refused);
  EXPECT_GT(refused, 300);
  EXPECT_TRUE(ParseRankReport(whole.dump()).ok());
}

TEST(RankReportTest, NoBeginningOfAReportIsOne) {
  const std::string text = RankReportText(Full());
  for (size_t length = 0; length + 2 < text.size(); ++length)
    ASSERT_FALSE(ParseRankReport(std::string_view(text).substr(0, length)).ok()) << length;
}

TEST(RankReportTest, DamagedBytesDoNoHarm) {
  std::mt19937 random(17);
  const std::string text = RankReportText(Full());
  for (int tries = 0; tries < 20000; ++tries) {
    std::string damaged = text;
    for (int n = 0; n < 1 + tries % 4; ++n)
      damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
    const absl::StatusOr<RankReport> read = ParseRankReport(damaged);
    if (read.ok()) {
      EXPECT_LT(read->rank, read->world_size);
    }
  }
}

}  // namespace
}  // namespace ft
