#include "runtime/postmortem/diagnosis.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/postmortem/postmortem_text.h"

namespace ft {
namespace {

// A rank of a run over `mesh` that was ended in its third program, train_step.
RankReport Rank(int rank, Mesh mesh) {
  RankReport report;
  report.rank = rank;
  report.world_size = mesh.world_size();
  report.mesh = mesh;
  report.meeting = "met";
  report.taken = 1000;
  report.started = 100;
  report.cause = "rank 0 failed: timed out";
  report.status = "UNAVAILABLE";
  report.origin = ReportOrigin::kPeer;
  report.blamed_rank = 0;
  report.activity.name = "computing";
  report.activity.step = 1;
  report.program = "train_step";
  report.runs = 3;
  report.streams.push_back({.name = "compute", .is_followed = true});
  return report;
}

ReportedInstruction Instruction(int64_t number, std::string title, double began_ago,
                                const std::string& axis = "") {
  ReportedInstruction instruction;
  instruction.program = "train_step";
  instruction.instruction = number;
  instruction.title = std::move(title);
  instruction.axis = axis;
  instruction.began_ago = began_ago;
  return instruction;
}

// Stands in a collective, after `entered - 1` others of its axis.
void Wait(RankReport& report, const std::string& stream, const std::string& axis, int64_t number,
          uint64_t entered, double seconds) {
  ReportedInstruction wait = Instruction(number + 1, "wait for it", seconds);
  wait.category = "wait";
  report.streams.front().current = wait;
  ReportedStream of{.name = stream, .is_followed = true};
  of.current = Instruction(number, "all_reduce h." + axis, seconds, axis);
  report.streams.push_back(of);
  report.collectives.push_back({stream, axis, entered, entered - 1});
}

void Compute(RankReport& report, int64_t number, double seconds) {
  report.streams.front().current = Instruction(number, "matmul", seconds);
}

Attempt AttemptOf(std::vector<RankReport> reports) {
  std::vector<std::string> remarks;
  std::vector<Attempt> attempts = SortIntoAttempts(std::move(reports), remarks);
  EXPECT_EQ(attempts.size(), 1u);
  EXPECT_TRUE(remarks.empty());
  return std::move(attempts.front());
}

std::string Said(const Attempt& attempt) { return Diagnose(attempt, FindGatherings(attempt)); }

// Ranks 0 and 1 are one shard group, 2 and 3 the other. Rank 3 computes for ever, rank 2 waits for it, and
// the others wait for those two.
TEST(DiagnosisTest, TheOneThatTheOthersWaitForInTheEndIsNamed) {
  const Mesh mesh{2, 2};
  RankReport r0 = Rank(0, mesh), r1 = Rank(1, mesh), r2 = Rank(2, mesh), r3 = Rank(3, mesh);
  for (RankReport* report : {&r0, &r1}) {
    report->collectives.push_back({"reduce", "shard", 8, 8});
    Wait(*report, "reduce", "replica", 40, 5, 7);
  }
  Wait(r2, "reduce", "shard", 38, 8, 9);
  r2.collectives.push_back({"reduce", "replica", 4, 4});
  Compute(r3, 20, 12);
  r3.collectives.push_back({"reduce", "shard", 7, 7});
  r3.collectives.push_back({"reduce", "replica", 4, 4});
  r0.missing_ranks = {2};
  r0.origin = ReportOrigin::kSelf;
  const Attempt attempt = AttemptOf({r3, r1, r0, r2});
  const std::vector<Gathering> gatherings = FindGatherings(attempt);
  EXPECT_EQ(gatherings.size(), 3u);
  EXPECT_EQ(Culprits(gatherings), std::vector<int>{3});
  EXPECT_EQ(
      Said(attempt),
      "Rank 3 did not come to all_reduce h.shard (train_step, instruction 38) over shard of ranks 2,3, call "
      "8, where rank 2 waited for 9.00 s. Rank 3 was computing in step 1, in matmul (train_step, "
      "instruction 20) for 12.0 s.");
  const std::string text = PostmortemText(attempt, {}, {"a remark"}, "");
  EXPECT_NE(text.find("places in the schedule, the furthest behind first:\n  rank 3: program 3"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("a remark\n"), std::string::npos);
}

// What a rank has entered counts, not which program it is in: this one has left the collective.
TEST(DiagnosisTest, ARankThatIsAheadHoldsNobodyUp) {
  const Mesh mesh{1, 3};
  RankReport r0 = Rank(0, mesh), r1 = Rank(1, mesh), r2 = Rank(2, mesh);
  Wait(r0, "gather", "shard", 10, 4, 3);
  r1.collectives.push_back({"gather", "shard", 4, 4});
  Compute(r1, 12, 3);
  r2.collectives.push_back({"gather", "shard", 3, 3});
  Compute(r2, 8, 3);
  const Attempt attempt = AttemptOf({r0, r1, r2});
  const std::vector<Gathering> gatherings = FindGatherings(attempt);
  ASSERT_EQ(gatherings.size(), 1u);
  EXPECT_EQ(gatherings[0].past, std::vector<int>{1});
  EXPECT_EQ(gatherings[0].behind, std::vector<int>{2});
  EXPECT_EQ(Culprits(gatherings), std::vector<int>{2});
}

// Rank 3 was stopped amid a collective: ranks 1 and 2 have got what they needed of it, and wait in the next
// one, also for rank 0. The first place is named.
TEST(DiagnosisTest, OfSeveralPlacesTheFirstInTheScheduleIsNamed) {
  const Mesh mesh{1, 4};
  RankReport r0 = Rank(0, mesh), r1 = Rank(1, mesh), r2 = Rank(2, mesh);
  Wait(r0, "gather", "shard", 10, 4, 5);
  Wait(r1, "gather", "shard", 12, 5, 5);
  Wait(r2, "gather", "shard", 12, 5, 5);
  const Attempt attempt = AttemptOf({r0, r1, r2});
  EXPECT_EQ(Culprits(FindGatherings(attempt)), std::vector<int>{3});
  const std::string said = Said(attempt);
  EXPECT_EQ(said.find("Rank 3 did not come to all_reduce h.shard (train_step, instruction 10)"), 0u) << said;
  EXPECT_NE(said.find("where rank 0 waited for 5.00 s"), std::string::npos) << said;
}

// It was stopped and went on: what it stands in says nothing, the one whose time was over knows.
TEST(DiagnosisTest, ARankThatCameTooLateIsNamed) {
  const Mesh mesh{1, 2};
  RankReport r0 = Rank(0, mesh), r1 = Rank(1, mesh);
  Wait(r0, "gather", "shard", 10, 4, 30);
  r0.origin = ReportOrigin::kSelf;
  r0.missing_ranks = {1};
  Wait(r1, "gather", "shard", 10, 4, 0.01);
  const std::string said = Said(AttemptOf({r0, r1}));
  EXPECT_EQ(said.find("Rank 1 did not come to all_reduce h.shard"), 0u) << said;
  EXPECT_NE(said.find("where rank 0 waited"), std::string::npos) << said;
}

TEST(DiagnosisTest, WhereAllHaveComeTheConnectionIsNamed) {
  const Mesh mesh{1, 2};
  RankReport r0 = Rank(0, mesh), r1 = Rank(1, mesh);
  Wait(r0, "gather", "shard", 10, 4, 30);
  Wait(r1, "gather", "shard", 10, 4, 29);
  EXPECT_NE(Said(AttemptOf({r0, r1})).find("and none left it: what connects them stopped"),
            std::string::npos);
}

// Ranks that were killed while they waited like the others leave nothing either; the time-out tells which one
// it was.
TEST(DiagnosisTest, OfThoseWithoutAReportTheMissingOneIsNamed) {
  const Mesh mesh{1, 4};
  RankReport r0 = Rank(0, mesh);
  Wait(r0, "gather", "shard", 10, 4, 30);
  r0.origin = ReportOrigin::kSelf;
  const std::string nobody = Said(AttemptOf({r0}));
  EXPECT_EQ(nobody.find("Rank 0 failed"), std::string::npos) << nobody;
  EXPECT_EQ(nobody.find("Ranks 1-3 did not come to"), 0u) << nobody;
  r0.missing_ranks = {2};
  const std::string said = Said(AttemptOf({r0}));
  EXPECT_EQ(said.find("Rank 2 did not come to"), 0u) << said;
}

// An error of a rank weighs more than what it did to others, and a broken connection less.
TEST(DiagnosisTest, TheRankThatFailedIsTheCause) {
  const Mesh mesh{1, 3};
  RankReport r0 = Rank(0, mesh), r1 = Rank(1, mesh), r2 = Rank(2, mesh);
  r0.origin = ReportOrigin::kSelf;
  r0.cause = "the connection to rank 1 broke";
  r0.taken = 990;
  r1.origin = ReportOrigin::kSelf;
  r1.status = "INTERNAL";
  r1.cause = "cannot write 'metrics.jsonl': No space left on device";
  const std::string said = Said(AttemptOf({r0, r1, r2}));
  EXPECT_EQ(said.find("Rank 1 failed: cannot write 'metrics.jsonl': No space left on device."), 0u) << said;
}

// The device says which collectives its streams are in, and nothing else.
TEST(DiagnosisTest, StreamsThatAreNotFollowedAreComparedByTheirCounts) {
  const Mesh mesh{1, 2};
  std::vector<RankReport> reports;
  for (int rank = 0; rank < 2; ++rank) {
    RankReport report = Rank(rank, mesh);
    report.streams = {{.name = "compute"}, {.name = "gather"}};
    if (rank == 0) report.streams[1].current = Instruction(10, "all_gather h.1", -1, "shard");
    report.collectives.push_back({"gather", "", rank == 0 ? 4u : 3u, 3});
    reports.push_back(report);
  }
  const std::string said = Said(AttemptOf(reports));
  EXPECT_EQ(
      said,
      "Rank 1 did not come to all_gather h.1 (train_step, instruction 10) over shard of ranks 0,1, call 4, "
      "where rank 0 waited. Rank 1 was computing in step 1, in train_step for 0.00 s.");
}

// Its streams have done all that the program has for them, or do not say what they do.
TEST(DiagnosisTest, ARankThatHangsBesideAProgramSaysAtWhat) {
  RankReport report = Rank(0, {1, 2});
  report.program_seconds = 9;
  report.activity = {.name = "reading the next batch", .step = 1, .micro_step = 0, .seconds = 7};
  EXPECT_EQ(Standing(report), "reading the next batch in step 1");
  EXPECT_EQ(StandingSeconds(report), 7);
  report.activity.name = "computing";
  EXPECT_EQ(Standing(report), "computing in step 1, in train_step");
  EXPECT_EQ(StandingSeconds(report), 9);
  report.activity.name = "reading the next batch";
  Compute(report, 12, 0.5);
  EXPECT_EQ(Standing(report), "reading the next batch in step 1, in matmul (train_step, instruction 12)");
  EXPECT_EQ(StandingSeconds(report), 0.5);
}

TEST(DiagnosisTest, AttemptsOfOtherRunsAreNotMixed) {
  const Mesh mesh{1, 2};
  RankReport old0 = Rank(0, mesh), old1 = Rank(1, mesh), new0 = Rank(0, mesh);
  new0.meeting = "another";
  new0.taken = 2000;
  RankReport before0 = Rank(0, mesh), before1 = Rank(1, mesh);  // neither met anybody, hours apart
  before0.meeting = before1.meeting = "";
  before1.started = before0.taken + 7200;
  before1.taken = before1.started + 1;
  std::vector<std::string> remarks;
  const std::vector<Attempt> attempts = SortIntoAttempts({old0, new0, before1, old1, before0}, remarks);
  ASSERT_EQ(attempts.size(), 4u);
  EXPECT_TRUE(remarks.empty());
  EXPECT_EQ(attempts[0].reports.front().rank, 1);  // before1, the newest
  EXPECT_EQ(attempts[1].meeting, "another");
  EXPECT_EQ(ChooseAttempt(attempts, std::nullopt), &attempts[0]);
  EXPECT_EQ(ChooseAttempt(attempts, 1), nullptr);
}

}  // namespace
}  // namespace ft
