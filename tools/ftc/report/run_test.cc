// Metrics and traces of runs: read as they are, and refused where they are of something else.
#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/str_replace.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/metrics/trace.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/report.h"
#include "runtime/plan/testing/targets.h"
#include "runtime/plan/testing/tiny_plan.h"
#include "tools/ftc/report/plan_columns.h"
#include "tools/ftc/report/run_metrics.h"
#include "tools/ftc/report/run_trace.h"

namespace ftc {
namespace {

using Json = nlohmann::json;

class RunTest : public testing::Test {
 protected:
  RunTest() {
    explained_.plan = ft::TinyPlan();
    explained_.plan.set_version(ft::kPlanVersion);
    explained_.target = ft::RoundTarget();
    explained_.bound = *ft::BindPlan(explained_.plan, {.replica = 1, .shard = 2}, ft::DeviceClass::kCpu);
    explained_.step = ft::SimulateStep(explained_.plan, explained_.bound, explained_.target);
  }

  std::string File(const std::string& text) const {
    const std::string path = testing::TempDir() + "/report_run_test";
    std::ofstream(path) << text;
    return path;
  }

  // 2 ranks of 2 sequences in `milliseconds`.
  std::string Line(int step, double milliseconds, const std::string& more = "") const {
    return fmt::format(
        "{{\"step\":{},\"loss\":{},\"tokens_per_s\":{:.17g},\"step_ms\":{:.17g},\"arena_bytes\":{},"
        "\"samples_per_s\":{:.17g}{}}}\n",
        step, 5 - 0.5 * step, 64e3 / milliseconds, milliseconds, explained_.bound.arena_bytes(),
        4e3 / milliseconds, more);
  }

  std::string MetricsError(const std::string& text) const {
    const auto metrics = ReadRunMetrics(File(text), explained_);
    return metrics.ok() ? "" : std::string(metrics.status().message());
  }

  // As ftexec writes it: every instruction of train_step takes its number plus `longer` microseconds, on each
  // of two ranks; `waits` before each that comes after others.
  std::string Trace(int steps, double longer) const {
    std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
    const std::string hash = ft::PlanHashText(ft::PlanHash(explained_.plan.SerializeAsString()));
    for (int rank = 0; rank < 2; ++rank) {
      Append({{"ph", "M"},
              {"pid", rank},
              {"tid", 0},
              {"name", ft::kTraceRunEvent},
              {"args", {{"plan", hash}, {"device", "cpu"}, {"replica", 1}, {"shard", 2}}}},
             text);
      for (int stream = 0; stream < ft::proto::Stream_ARRAYSIZE; ++stream)
        Append({{"ph", "M"},
                {"pid", rank},
                {"tid", stream},
                {"name", "thread_name"},
                {"args", {{"name", StreamKey(static_cast<ft::proto::Stream>(stream))}}}},
               text);
    }
    const auto& instructions = explained_.plan.programs(1).instructions();
    for (int rank = 0; rank < 2; ++rank) {
      for (int step = 0; step < steps; ++step) {
        for (int i = 0; i < instructions.size(); ++i) Add(instructions[i], i, rank, step, longer, text);
      }
    }
    text.erase(text.size() - 2, 1);  // the comma
    return text + "]}\n";
  }

  static void Append(const Json& event, std::string& text) { text += event.dump() + ",\n"; }

  void Add(const ft::proto::Instruction& instruction, int number, int rank, int step, double longer,
           std::string& text) const {
    const auto add = [&](const std::string& name, const std::string& category, double micros) {
      Append({{"ph", "X"},
              {"pid", rank},
              {"tid", static_cast<int>(instruction.stream())},
              {"name", name},
              {"cat", category},
              {"ts", 1000.0 * step + number},
              {"dur", micros},
              {"args",
               {{"sequence", number},
                {"program", explained_.plan.programs(1).name()},
                {"step", step + 40},
                {"micro_step", 0}}}},
             text);
    };
    if (instruction.after_size() > 0) add("wait for something", "wait", 2);
    if (instruction.opcode() == ft::proto::WAIT || instruction.opcode() == ft::proto::RELEASE) return;
    // The first step is slow, the second rank always.
    add(ft::InstructionTitle(explained_.plan, instruction), "forward",
        number + longer + (step == 0 ? 1000 : 0) + (rank == 1 ? 10 : 0));
  }

  std::string TraceError(const std::string& text) const {
    const auto trace = ReadRunTrace(File(text), explained_);
    return trace.ok() ? "" : std::string(trace.status().message());
  }

  Explained explained_;
};

TEST_F(RunTest, ReadsMetrics) {
  std::string text = Line(0, 80, ",\"skipped\":true");
  for (int step = 1; step < 9; ++step) text += Line(step, 10 + step, fmt::format(",\"exposed_ms\":{}", step));
  text += "{\"step\":8,\"eval_loss\":2.5,\"eval_tokens\":64}\n";
  text += "{\"step\":8,\"sample\":0,\"sample_tokens\":[7],\"sample_text\":\"a\"}\n";
  const auto metrics = ReadRunMetrics(File(text), explained_);
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_EQ(metrics->file, "report_run_test");
  EXPECT_EQ(metrics->steps, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(metrics->columns[0][3], 3.5);
  EXPECT_EQ(metrics->columns[1][3], std::nullopt);  // no norm
  EXPECT_EQ(metrics->evaluated, std::vector<int64_t>{8});
  EXPECT_EQ(metrics->eval_losses[0], 2.5);
  // After the fifth: 15, 16, 17, 18 ms.
  ASSERT_TRUE(metrics->steady.has_value());
  EXPECT_EQ(metrics->steady->steps, 4);
  EXPECT_DOUBLE_EQ(metrics->steady->step_ms, 16.5);
  EXPECT_DOUBLE_EQ(*metrics->steady->exposed_ms, 6.5);
}

TEST_F(RunTest, ShortRunsHaveNoSteadyStep) {
  std::string text;
  for (int step = 0; step < 5; ++step) text += Line(step, 10);
  EXPECT_FALSE(ReadRunMetrics(File(text), explained_)->steady.has_value());
}

TEST_F(RunTest, MeasuresTheStepsOfThePlanAlone) {
  std::string text;
  for (int step = 0; step < 8; ++step) {  // as a run of one rank, half of the sequences
    Json row = Json::parse(Line(step, 30));
    row["samples_per_s"] = row["samples_per_s"].get<double>() / 2;
    text += row.dump() + "\n";
  }
  for (int step = 8; step < 15; ++step) text += Line(step, 10 + step);
  const auto metrics = ReadRunMetrics(File(text), explained_);
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_EQ(metrics->lines, 15);
  EXPECT_EQ(metrics->others, 8);
  // After the fifth of two ranks: 23 and 24 ms.
  ASSERT_TRUE(metrics->steady.has_value());
  EXPECT_EQ(metrics->steady->steps, 2);
  EXPECT_DOUBLE_EQ(metrics->steady->step_ms, 23.5);
}

TEST_F(RunTest, RefusesTimesThatCannotBe) {
  EXPECT_THAT(MetricsError(Line(0, -10)), testing::HasSubstr(":1: no line of metrics: 'tokens_per_s' is -"));
  EXPECT_THAT(MetricsError(Line(0, 10) + Line(1, 10, ",\"exposed_ms\":-7")),
              testing::HasSubstr(":2: no line of metrics: 'exposed_ms' is -7, less than 0"));
  EXPECT_THAT(MetricsError(Line(0, 1e13)), testing::HasSubstr("no step takes 1e+13 ms"));
  Json row = Json::parse(Line(0, 10));
  row["arena_bytes"] = nullptr;
  EXPECT_THAT(MetricsError(row.dump() + "\n"), testing::HasSubstr("'arena_bytes' is no number"));
  row.erase("samples_per_s");
  EXPECT_THAT(MetricsError(row.dump() + "\n"), testing::HasSubstr("it has no 'samples_per_s'"));
}

TEST_F(RunTest, ThinsLongRuns) {
  std::string text;
  for (int step = 0; step < 9001; ++step) text += Line(step, 10);
  const auto metrics = ReadRunMetrics(File(text), explained_);
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_EQ(metrics->lines, 9001);
  EXPECT_EQ(metrics->every, 3);
  EXPECT_EQ(metrics->steps.size(), 3001u);
  EXPECT_EQ(metrics->steps.back(), 9000);
  EXPECT_EQ(metrics->columns[0].size(), 3001u);
  EXPECT_EQ(metrics->steady->steps, 8996);
}

TEST_F(RunTest, RefusesOtherMetrics) {
  EXPECT_THAT(MetricsError(""), testing::HasSubstr("has no metrics"));
  EXPECT_THAT(MetricsError(Line(0, 10) + "{\"step\":1,\n"),
              testing::HasSubstr("report_run_test:2: no line of metrics"));
  EXPECT_THAT(MetricsError(Line(0, 10) + "\n"), testing::HasSubstr(":2: no line"));
  EXPECT_THAT(MetricsError("[1]\n"), testing::HasSubstr(":1: no line"));
  EXPECT_THAT(MetricsError("{\"loss\":1}\n"), testing::HasSubstr(":1: no line of metrics: it has no 'step'"));
  EXPECT_THAT(MetricsError("{\"step\":0,\"loss\":1}\n"),
              testing::HasSubstr(":1: no line of metrics: it has no 'tokens_per_s'"));
  EXPECT_THAT(MetricsError(Line(0, 10, ",\"lr\":\"high\"")), testing::HasSubstr(":1: 'lr' is no number"));
  EXPECT_THAT(MetricsError(Line(-1, 10)), testing::HasSubstr(":1: no line of metrics: its step is -1"));
  EXPECT_THAT(MetricsError(Line(1, 10) + Line(0, 10)), testing::HasSubstr(":2: step 0 comes after step 1"));
  EXPECT_THAT(MetricsError(Line(1, 10) + Line(1, 10)), testing::HasSubstr(":2: step 1 is there twice"));
  const std::string line = Line(0, 10);
  explained_.bound = *ft::BindPlan(explained_.plan, {.replica = 1, .shard = 4}, ft::DeviceClass::kCpu);
  EXPECT_THAT(MetricsError(line),
              testing::HasSubstr(
                  ":1: metrics of 2 ranks, or of another plan, but the report is for 4: --world-size=2"));
  explained_.plan = ft::TinyPlan({.hidden = 16});
  explained_.bound = *ft::BindPlan(explained_.plan, {.replica = 1, .shard = 2}, ft::DeviceClass::kCpu);
  EXPECT_THAT(MetricsError(line), testing::HasSubstr(":1: metrics of another plan, mesh or device"));
  explained_.plan.set_batch(3);
  EXPECT_THAT(MetricsError(line), testing::HasSubstr(":1: metrics of another plan: 4 sequences in a step"));
}

TEST_F(RunTest, NumbersThatAreNotFiniteAreGaps) {
  std::string line = Line(0, 10);
  line.replace(line.find("\"loss\":5"), 8, "\"loss\":null,\"loss_nonfinite\":\"nan\"");
  const auto metrics = ReadRunMetrics(File(line), explained_);
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_EQ(metrics->columns[0][0], std::nullopt);
}

TEST_F(RunTest, NumbersThatARangeCannotHoldAreGaps) {
  const auto metrics = ReadRunMetrics(File(Line(0, 10, ",\"lr\":1e300,\"grad_norm\":-1.7e308")), explained_);
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_EQ(metrics->columns[1][0], std::nullopt);
  EXPECT_EQ(metrics->columns[2][0], 1e300);
}

TEST_F(RunTest, PairsTheTraceWithInstructions) {
  const auto trace = ReadRunTrace(File(Trace(3, 5)), explained_);
  ASSERT_TRUE(trace.ok()) << trace.status();
  const Comparison& comparison = trace->comparison;
  EXPECT_EQ(comparison.ranks, 2);
  EXPECT_EQ(comparison.steps, 2);
  EXPECT_EQ(comparison.left_out, 1);
  EXPECT_EQ(comparison.unmeasured, 0);
  ASSERT_FALSE(comparison.instructions.empty());
  double measured = 0, of_classes = 0;
  for (const InstructionAgainst& one : comparison.instructions) {
    EXPECT_EQ(one.program, 1);
    EXPECT_NEAR(one.seconds.median, (one.instruction + 5 + 5) * 1e-6, 1e-12);  // ranks differ by 10 us
    EXPECT_NEAR(one.seconds.slowest, (one.instruction + 5 + 10) * 1e-6, 1e-12);
    measured += one.seconds.median;
  }
  for (const ClassAgainst& one : comparison.classes) of_classes += one.seconds.median;
  EXPECT_NEAR(of_classes, measured, 1e-12);
  int waits = 0;
  for (const auto& one : explained_.plan.programs(1).instructions())
    waits += one.stream() == ft::proto::COMPUTE && one.after_size() > 0 ? 1 : 0;
  EXPECT_NEAR(comparison.exposed.median, waits * 2e-6, 1e-12);
}

TEST_F(RunTest, FirstStepsAreLeftOut) {
  for (const auto& [steps, left_out] : {std::pair(1, 0), {2, 1}, {5, 1}, {6, 5}, {9, 5}}) {
    const std::string text = Trace(steps, 0);
    const auto trace = ReadRunTrace(File(text), explained_);
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_EQ(trace->comparison.left_out, left_out);
    EXPECT_EQ(trace->comparison.steps, steps - left_out);
    EXPECT_EQ(trace->comparison.first_step, 40 + left_out);
    // One run of the program, from its beginning: of the first rank in a step that counts.
    ASSERT_FALSE(trace->events.empty());
    double begin = 1, end = 0;
    for (const RunTrace::Event& event : trace->events)
      begin = std::min(begin, event.begin), end = std::max(end, event.end);
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end < 1e-3, left_out > 0);  // the first step takes a millisecond longer
    const auto simulated = ReadRunTrace(
        File(absl::StrReplaceAll(text, {{"\"cpu\"", "\"null\",\"target\":\"round\""}})), explained_);
    ASSERT_TRUE(simulated.ok()) << simulated.status();
    EXPECT_EQ(simulated->comparison.left_out, 0);
  }
}

TEST_F(RunTest, TracedStepsOfGpusAreLaunched) {
  const std::string text = absl::StrReplaceAll(Trace(2, 0), {{"\"cpu\"", "\"cuda\""}});
  EXPECT_THAT(TraceError(text),
              testing::HasSubstr("is a trace of GPUs, but round is not: give a --target that is"));
  explained_.target.set_cuda(true);
  explained_.step = ft::SimulateStep(explained_.plan, explained_.bound, explained_.target);
  const auto trace = ReadRunTrace(File(text), explained_);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->comparison.launch_s, 5e-6);
  EXPECT_EQ(trace->comparison.untraced.predicted, explained_.step.seconds);
  EXPECT_GT(trace->comparison.step.predicted, explained_.step.seconds);
  EXPECT_THAT(TraceError(Trace(2, 0)), testing::HasSubstr("is a trace of CPU ranks, but"));
}

TEST_F(RunTest, RefusesOtherTraces) {
  for (const char* text :
       {"", "[]", "{\"traceEvents\":[]}", "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n1\n]}\n"})
    EXPECT_THAT(TraceError(text), testing::HasSubstr("is no trace of ftexec")) << text;
  const std::string good = Trace(2, 0);
  EXPECT_EQ(TraceError(good), "");
  EXPECT_THAT(TraceError(good.substr(0, good.size() / 2)), testing::HasSubstr("is no trace of ftexec"));
  const auto with = [&](const std::string& old, const std::string& other) {
    std::string text = good;
    text.replace(text.find(old), old.size(), other);
    return TraceError(text);
  };
  EXPECT_THAT(with("\"program\":\"train_step\"", "\"program\":\"train_stop\""),
              testing::HasSubstr("report_run_test: the trace has instruction 0 of program 'train_stop'"));
  // A program that no step runs, and times of which sums in nanoseconds are none.
  const std::string other = explained_.plan.programs(0).name();
  ASSERT_EQ(ft::RunsInStep(explained_.plan, explained_.plan.programs(0)), 0u);
  EXPECT_THAT(
      with("\"program\":\"train_step\",\"sequence\":0,", "\"program\":\"" + other + "\",\"sequence\":0,"),
      testing::HasSubstr("instructions of program '" + other + "', which does not run in a step"));
  EXPECT_THAT(with("\"ts\":1000.0", "\"ts\":4.6e15"), testing::HasSubstr("no ts, dur and tid that can be"));
  EXPECT_EQ(with("\"ts\":1000.0", "\"ts\":4.4e15"), "");
  EXPECT_THAT(with("\"sequence\":1,", "\"sequence\":100000,"),
              testing::HasSubstr("report_run_test: the trace has instruction 100000 of program"));
  explained_.bound = *ft::BindPlan(explained_.plan, {.replica = 1, .shard = 4}, ft::DeviceClass::kCpu);
  EXPECT_THAT(TraceError(good), testing::HasSubstr("trace of ranks on a mesh of"));
  explained_.bound = *ft::BindPlan(explained_.plan, {.replica = 1, .shard = 2}, ft::DeviceClass::kCpu);
  explained_.plan.set_model("another");
  EXPECT_THAT(TraceError(good), testing::HasSubstr("report_run_test' is a trace of plan "));
}

}  // namespace
}  // namespace ftc
