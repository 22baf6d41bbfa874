#include "runtime/metrics/progress.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

namespace ft {
namespace {

double now = 0;  // what the tests' clock says
double Clock() { return now; }

class ProgressTest : public testing::Test {
 protected:
  void SetUp() override {
    now = 100;
    ASSERT_EQ(pipe(pipe_), 0);
  }
  void TearDown() override { close(pipe_[0]); }

  int fd() const { return pipe_[1]; }

  // Everything written so far. To be called once.
  std::string Output() {
    close(pipe_[1]);
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = read(pipe_[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, n);
    return text;
  }
  std::vector<std::string> Lines() {
    std::vector<std::string> lines;
    std::istringstream text(Output());
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
  static StepMetrics Step(int64_t step) { return {step, 4.25, 1.5, 6e-4, 12345.6, 83.04, 0}; }

  int pipe_[2];
};

TEST_F(ProgressTest, PlainLinesElsewhereThanOnATerminal) {
  {
    Progress progress(fd(), ProgressMode::kAuto, 1000, Clock);
    for (int step = 0; step < 1000; ++step) {
      progress.Update(Step(step));
      now += 0.01;
    }
  }
  const std::vector<std::string> lines = Lines();
  // The first, one for each of the further 9.99 seconds, the last.
  ASSERT_GE(lines.size(), 10u);
  ASSERT_LE(lines.size(), 11u);
  EXPECT_EQ(lines[0], "step 1/1000  loss 4.2500  grad 1.5000  lr 6.0e-04  12346 tok/s  83.0 ms  left 1:22");
  EXPECT_TRUE(lines[5].ends_with("left 0:04") || lines[5].ends_with("left 0:05")) << lines[5];
  EXPECT_TRUE(lines.back().starts_with("step 1000/1000  ") && lines.back().ends_with("left 0:00"))
      << lines.back();
}

TEST_F(ProgressTest, SlowStepsAreAllShown) {
  Progress progress(fd(), ProgressMode::kAuto, 5, Clock);
  for (int step = 0; step < 5; ++step) {
    progress.Update(Step(step));
    now += 3;
  }
  progress.Finish();
  EXPECT_EQ(Lines().size(), 5u);
}

TEST_F(ProgressTest, UpdatesInPlaceWhenOn) {
  {
    Progress progress(fd(), ProgressMode::kOn, 100, Clock);
    for (int step = 0; step < 50; ++step) {  // stops early
      progress.Update(Step(step));
      now += 0.01;
    }
  }
  const std::string text = Output();
  EXPECT_TRUE(text.starts_with("\rstep 1/100  ")) << text;
  // Steps 1, 11, 21, 31, 41 by the clock, and the newest when it ends.
  EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 6);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_NE(text.rfind("\rstep 50/100  "), std::string::npos);
  EXPECT_TRUE(text.ends_with("\x1b[K\n"));
}

TEST_F(ProgressTest, AnEvaluationStaysOnItsOwnLine) {
  Progress progress(fd(), ProgressMode::kOn, 100, Clock);
  for (int step = 0; step < 3; ++step) progress.Update(Step(step));
  progress.ShowEvaluation({.step = 2, .loss = 3.5, .tokens = 640});
  progress.Finish();
  const std::string text = Output();
  EXPECT_NE(text.find("\rstep 3/100  "), std::string::npos) << text;  // the newest step, though just painted
  EXPECT_TRUE(text.ends_with("\x1b[K\nstep 3/100  eval loss 3.5000  over 640 tokens\n")) << text;
}

TEST_F(ProgressTest, OutputsAndExamplesOfModelsWithoutTokens) {
  Progress progress(fd(), ProgressMode::kAuto, 1, Clock);
  StepMetrics step = Step(0);
  step.counts_tokens = false;
  progress.Update(step);
  std::vector<EvaluationOutput> outputs(16,
                                        {.name = std::string(64, 'x'), .key = "", .tag = "", .value = 0.25});
  outputs[0].name = "accuracy";
  progress.ShowEvaluation({.step = 0, .loss = 1, .tokens = 8, .counted = "examples", .outputs = outputs});
  const auto lines = Lines();
  EXPECT_NE(lines.at(0).find(" ex/s  "), std::string::npos) << lines.at(0);
  EXPECT_NE(lines.at(1).find("eval loss 1.0000  accuracy 0.2500  xxx"), std::string::npos) << lines.at(1);
  EXPECT_TRUE(lines.at(1).ends_with("over 8 examples")) << lines.at(1);
}

TEST_F(ProgressTest, AStepThatWasNotAppliedSaysSo) {
  Progress progress(fd(), ProgressMode::kAuto, 100, Clock);
  progress.Update({.step = 0, .loss = NAN, .grad_norm = NAN, .skipped = true});
  EXPECT_TRUE(Lines().at(0).starts_with("step 1/100  loss nan  grad nan  not applied  lr "));
}

TEST_F(ProgressTest, OffIsSilent) {
  Progress progress(fd(), ProgressMode::kOff, 1, Clock);
  progress.Update(Step(0));
  progress.ShowEvaluation({.step = 0, .loss = 1, .tokens = 1});
  progress.Finish();
  EXPECT_EQ(Output(), "");
}

TEST_F(ProgressTest, FinishWithoutStepsWritesNothing) {
  {
    Progress progress(fd(), ProgressMode::kOn, 1, Clock);
  }
  EXPECT_EQ(Output(), "");
}

TEST_F(ProgressTest, TimeLeftOfAResumedRunCountsItsOwnSteps) {
  Progress progress(fd(), ProgressMode::kAuto, 1000, Clock);
  progress.Update(Step(900));
  now += 20;
  progress.Update(Step(910));  // 2 s a step, 89 to go
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[1].ends_with("left 2:58")) << lines[1];
}

TEST_F(ProgressTest, LargeNumbersStayBelowAHundredColumns) {
  Progress progress(fd(), ProgressMode::kAuto, 100'000, Clock);
  progress.Update({9'999, 987.6543, 987.6543, 1e-4, 99'999, 9'999.9, 0});
  now += 36;
  progress.Update({10'000, -1e30, 1e30, 1e-10, 99'999'999, 999'999.9, 0});
  progress.Update({99'999, NAN, INFINITY, 1e-4, 0, 0, 0});
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(
      lines[0],
      "step 10000/100000  loss 987.6543  grad 987.6543  lr 1.0e-04  99999 tok/s  9999.9 ms  left 10 days");
  EXPECT_EQ(
      lines[1],
      "step 10001/100000  loss -1.00e+30  grad 1.00e+30  lr 1.0e-10  100000k tok/s  1000.0 s  left 37 days");
  EXPECT_EQ(lines[2], "step 100000/100000  loss nan  grad inf  lr 1.0e-04  0 tok/s  0.0 ms  left 0:00");
}

// "\r" and what erases the rest of the line take no column.
TEST_F(ProgressTest, NoLineWraps) {
  StepMetrics metrics{99'999'999, -1e300, 1e300, 1e-100, 1e30, 1e30, 0};
  metrics.mfu = 0.5;
  metrics.exposed_ms = 1e30;
  {
    Progress progress(fd(), ProgressMode::kOn, 1'000'000'000, Clock);
    progress.Update(metrics);
  }
  EXPECT_EQ(Lines().at(0).size(), 99u + std::string_view("\r\x1b[K").size());
}

TEST_F(ProgressTest, SaysWhatADeviceKnows) {
  Progress progress(fd(), ProgressMode::kAuto, 10, Clock);
  StepMetrics metrics = Step(0);
  progress.Update(metrics);
  metrics.step = 9;
  metrics.mfu = 0.4567;
  metrics.exposed_ms = 3.21;
  metrics.utilization = 0.98;
  progress.Update(metrics);
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].find("mfu"), std::string::npos);
  EXPECT_TRUE(lines[1].ends_with("  mfu 45.7%  exposed 3.2 ms  busy 98%")) << lines[1];
}

TEST_F(ProgressTest, AClosedPipeIsNoReasonToStop) {
  close(pipe_[1]);
  Progress progress(fd(), ProgressMode::kOn, 2, Clock);
  progress.Update(Step(0));
  progress.Update(Step(1));
}

TEST(ProgressModeTest, Words) {
  EXPECT_EQ(*ParseProgressMode("auto"), ProgressMode::kAuto);
  EXPECT_EQ(*ParseProgressMode("on"), ProgressMode::kOn);
  EXPECT_EQ(*ParseProgressMode("off"), ProgressMode::kOff);
  EXPECT_EQ(ParseProgressMode("yes").status().message(),
            "unknown progress mode 'yes'; choose auto, on or off");
}

}  // namespace
}  // namespace ft
