#include "runtime/metrics/jsonl.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/exit_status.h"
#include "runtime/base/testing/temp_folder.h"

namespace ft {
namespace {

class JsonlTest : public testing::Test {
 protected:
  std::vector<nlohmann::json> Lines() {
    std::vector<nlohmann::json> lines;
    std::istringstream text(TempFolder::Read(path_));
    for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  TempFolder folder_;
  std::string path_ = folder_.Path("m.jsonl");
};

TEST_F(JsonlTest, WritesOneObjectAStep) {
  auto file = MetricsFile::Open(path_);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Write({0, 5.5, 1.25, 3e-4, 1000, 12.5, uint64_t{1} << 40}).ok());
  EXPECT_EQ(TempFolder::Read(path_),
            "{\"step\":0,\"loss\":5.5,\"grad_norm\":1.25,\"lr\":0.00029999999999999997,\"tokens_per_s\":1000,"
            "\"step_ms\":12.5,\"arena_bytes\":1099511627776,\"samples_per_s\":0}\n");
  const std::vector<ExtraMetric> extra = {{"kl", 0.5}, {"allocations", 0}};
  ASSERT_TRUE((*file)->Write({1, 5, 1, 0, 0, 0, 0}, extra).ok());
  ASSERT_EQ(Lines().size(), 2u);
  EXPECT_EQ(Lines()[1]["step"], 1);
  EXPECT_EQ(Lines()[1]["kl"], 0.5);
  EXPECT_EQ(Lines()[1]["allocations"], 0);
}

TEST_F(JsonlTest, SaysWhatIsNotSoInEveryStep) {
  auto file = MetricsFile::Open(path_);
  ASSERT_TRUE((*file)->Write({.step = 1, .samples_per_s = 2.5}).ok());
  ASSERT_TRUE(
      (*file)
          ->Write({.step = 2, .loss = NAN, .loss_scale = 65536, .host_arena_bytes = 512, .skipped = true})
          .ok());
  EXPECT_EQ(Lines()[0]["samples_per_s"], 2.5);
  for (const char* key : {"host_arena_bytes", "loss_scale", "skipped"})
    EXPECT_FALSE(Lines()[0].contains(key)) << key;
  EXPECT_EQ(Lines()[1]["host_arena_bytes"], 512);
  EXPECT_EQ(Lines()[1]["loss_scale"], 65536);
  EXPECT_EQ(Lines()[1]["skipped"], true);
  EXPECT_TRUE(Lines()[1]["loss"].is_null());
}

TEST_F(JsonlTest, WhatDoesNotChangeStandsInTheNextStepsLineAlone) {
  auto file = MetricsFile::Open(path_);
  using Parts = std::vector<std::pair<std::string_view, uint64_t>>;
  (*file)->AddOnce("bytes", Parts{{"parameters", 5}, {"workspace", uint64_t{1} << 40}});
  (*file)->AddOnce("host_bytes", Parts{{"parameters", 7}});
  ASSERT_TRUE((*file)->WriteEvaluation({.step = -1}).ok());
  ASSERT_TRUE((*file)->Write({.step = 0, .skipped = true}, std::vector<ExtraMetric>{{"kl", 0.5}}).ok());
  ASSERT_TRUE((*file)->Write({.step = 1}).ok());
  EXPECT_FALSE(Lines()[0].contains("bytes"));
  EXPECT_EQ(Lines()[1]["bytes"], nlohmann::json::parse(R"({"parameters":5,"workspace":1099511627776})"));
  EXPECT_EQ(Lines()[1]["host_bytes"], nlohmann::json::parse(R"({"parameters":7})"));
  EXPECT_EQ(Lines()[1]["kl"], 0.5);
  EXPECT_FALSE(Lines()[2].contains("bytes"));
}

TEST_F(JsonlTest, WhatIsKnownOfTheRanksNamesItsStep) {
  auto file = MetricsFile::Open(path_);
  ASSERT_TRUE((*file)->Write({.step = 1}).ok());
  const ComputeSpread spread{.step = 1, .min_ms = 10, .mean_ms = 12.5, .max_ms = 20, .slowest_rank = 3};
  ASSERT_TRUE((*file)->Write({.step = 2, .compute = spread}).ok());
  EXPECT_FALSE(Lines()[0].contains("slowest_rank"));
  const auto line = Lines()[1];
  EXPECT_EQ(line["compute_step"], 1);
  EXPECT_EQ(line["compute_ms_min"], 10);
  EXPECT_EQ(line["compute_ms_mean"], 12.5);
  EXPECT_EQ(line["compute_ms_max"], 20);
  EXPECT_EQ(line["slowest_rank"], 3);
}

TEST_F(JsonlTest, EvaluationsHaveALineOfTheirOwn) {
  auto file = MetricsFile::Open(path_);
  ASSERT_TRUE((*file)->WriteEvaluation({.step = 9, .loss = 2.25, .tokens = 640}).ok());
  EXPECT_EQ(TempFolder::Read(path_), "{\"step\":9,\"eval_loss\":2.25,\"eval_tokens\":640}\n");
}

TEST_F(JsonlTest, AnEvaluationOfNothingHasNoMeans) {
  auto file = MetricsFile::Open(path_);
  const std::vector<EvaluationOutput> outputs = {
      {.name = "accuracy", .key = "eval_accuracy", .tag = "", .value = NAN}};
  ASSERT_TRUE((*file)->WriteEvaluation({.step = 9, .loss = NAN, .tokens = 0, .outputs = outputs}).ok());
  EXPECT_EQ(TempFolder::Read(path_), "{\"step\":9,\"eval_loss\":null,\"eval_tokens\":0}\n");
}

TEST_F(JsonlTest, EvaluationsHaveTheOutputsOfTheModel) {
  auto file = MetricsFile::Open(path_);
  const std::vector<EvaluationOutput> outputs = {
      {.name = "accuracy", .key = "eval_accuracy", .tag = "", .value = 0.5},
      {.name = "odd", .key = "eval_odd", .tag = "", .value = NAN}};
  ASSERT_TRUE((*file)->WriteEvaluation({.step = 0, .loss = 1, .tokens = 8, .outputs = outputs}).ok());
  const auto line = Lines()[0];
  EXPECT_EQ(line["eval_accuracy"], 0.5);
  EXPECT_TRUE(line["eval_odd"].is_null());
  EXPECT_EQ(line["eval_odd_nonfinite"], "nan");
}

TEST_F(JsonlTest, DoublesRoundTrip) {
  const std::vector<double> values = {0.1,  1.0 / 3, 5e-324,       std::numeric_limits<double>::max(),
                                      -0.0, 1e22,    123456789.125};
  auto file = MetricsFile::Open(path_);
  for (double value : values) ASSERT_TRUE((*file)->Write({0, value, 0, 0, 0, 0, 0}).ok());
  const std::vector<nlohmann::json> lines = Lines();
  ASSERT_EQ(lines.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint64_t>(lines[i]["loss"].get<double>()), std::bit_cast<uint64_t>(values[i]))
        << values[i];
  }
}

TEST_F(JsonlTest, NonFiniteNumbersAreNullAndNamed) {
  auto file = MetricsFile::Open(path_);
  ASSERT_TRUE((*file)->Write({7, NAN, INFINITY, -INFINITY, 1, 1, 1}).ok());
  const nlohmann::json line = Lines().at(0);
  EXPECT_TRUE(line["loss"].is_null());
  EXPECT_EQ(line["loss_nonfinite"], "nan");
  EXPECT_EQ(line["grad_norm_nonfinite"], "inf");
  EXPECT_EQ(line["lr_nonfinite"], "-inf");
  EXPECT_FALSE(line.contains("step_ms_nonfinite"));
}

TEST_F(JsonlTest, AppendsOrTruncates) {
  for (auto mode : {MetricsFile::OpenMode::kTruncate, MetricsFile::OpenMode::kAppend}) {
    ASSERT_TRUE((*MetricsFile::Open(path_, mode))->Write({}).ok());
  }
  EXPECT_EQ(Lines().size(), 2u);
  ASSERT_TRUE(MetricsFile::Open(path_).ok());
  EXPECT_EQ(Lines().size(), 0u);
}

TEST_F(JsonlTest, RefusesWhatItCannotWrite) {
  EXPECT_EQ(ExitStatus(MetricsFile::Open(folder_.Path("no/such")).status()), kExitIo);
  auto file = MetricsFile::Open(path_);
  const std::vector<ExtraMetric> unquotable = {{"a\"b", 1}}, nameless = {{"", 1}};
  EXPECT_EQ((*file)->Write({}, unquotable).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ((*file)->Write({}, nameless).code(), absl::StatusCode::kInvalidArgument);
  const std::string name(MetricsFile::kMaxLine, 'x');
  const std::vector<ExtraMetric> endless = {{name, 1}};
  EXPECT_EQ((*file)->Write({}, endless).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(TempFolder::Read(path_), "");
}

TEST_F(JsonlTest, SaysThatTheDiskIsFull) {
  auto file = MetricsFile::Open("/dev/full", MetricsFile::OpenMode::kAppend);
  if (!file.ok()) GTEST_SKIP() << "skipped: no /dev/full here";
  const absl::Status status = (*file)->Write({});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      status.message(),
      "cannot write '/dev/full': the disk (or the quota) is full; free some room or choose another folder");
}

}  // namespace
}  // namespace ft
