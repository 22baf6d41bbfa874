#include "runtime/metrics/training_events.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/testing/temp_folder.h"
#include "runtime/metrics/testing/event_reader.h"

namespace ft {
namespace {

class TrainingEventsTest : public testing::Test {
 protected:
  TrainingEvents Make() {
    auto file = EventFile::Open(folder_.Path("."));
    EXPECT_TRUE(file.ok()) << file.status();
    return TrainingEvents(*std::move(file), [this](const std::string& line) { warnings_.push_back(line); });
  }
  // Of the record after version and start with this number.
  std::map<std::string, float> Scalars(const TrainingEvents& events, size_t index) {
    std::map<std::string, float> scalars;
    const std::vector<ReadEvent> read = ReadEvents(TempFolder::Read(events.path()));
    for (const ReadScalar& scalar : read.at(index + 2).scalars)
      EXPECT_TRUE(scalars.emplace(scalar.tag, scalar.value).second) << scalar.tag << " is there twice";
    return scalars;
  }

  TempFolder folder_;
  std::vector<std::string> warnings_;
};

TEST_F(TrainingEventsTest, WhatAStepHas) {
  TrainingEvents events = Make();
  const StepMetrics full = {.step = 4,
                            .loss = 5.5,
                            .grad_norm = 1.25,
                            .lr = 3e-4,
                            .tokens_per_s = 1000,
                            .step_ms = 12.5,
                            .arena_bytes = uint64_t{1} << 40,
                            .samples_per_s = 7,
                            .loss_scale = 65536,
                            .host_arena_bytes = 512,
                            .exposed_ms = 0,
                            .mfu = 0.5,
                            .utilization = 0.75,
                            .skipped = true};
  events.Write(full);
  std::map<std::string, float> scalars = Scalars(events, 0);
  EXPECT_GT(scalars["memory/resident_bytes"], 1e6);
  scalars.erase("memory/resident_bytes");
  const std::map<std::string, float> expected = {{"train/loss", 5.5},
                                                 {"train/grad_norm", 1.25},
                                                 {"train/lr", 3e-4},
                                                 {"train/skipped", 1},
                                                 {"train/loss_scale", 65536},
                                                 {"throughput/tokens_per_s", 1000},
                                                 {"throughput/samples_per_s", 7},
                                                 {"throughput/step_ms", 12.5},
                                                 {"throughput/mfu", 0.5},
                                                 {"throughput/utilization", 0.75},
                                                 {"communication/exposed_ms", 0},
                                                 {"memory/arena_bytes", 1099511627776.0f},
                                                 {"memory/host_arena_bytes", 512}};
  EXPECT_EQ(scalars, expected);
  EXPECT_EQ(ReadEvents(TempFolder::Read(events.path())).at(2).step, 4);
}

TEST_F(TrainingEventsTest, WhatAStepHasNotIsLeftOut) {
  TrainingEvents events = Make();
  events.Write({.step = 0});
  events.Write({.step = 1, .loss = NAN, .grad_norm = INFINITY});
  std::map<std::string, float> scalars = Scalars(events, 1);
  EXPECT_EQ(scalars.count("memory/resident_bytes"), 0u) << "twice in a second";
  EXPECT_TRUE(std::isnan(scalars["train/loss"]));
  EXPECT_EQ(scalars["train/grad_norm"], INFINITY);
  EXPECT_EQ(scalars.at("train/skipped"), 0);
  EXPECT_EQ(scalars.size(), 7u);
}

TEST_F(TrainingEventsTest, EvaluationsAndTexts) {
  TrainingEvents events = Make();
  events.WriteText(0, "run/settings", "text");
  events.WriteEvaluation({.step = -1, .loss = 2.5, .tokens = 10});
  const std::map<std::string, float> expected = {{"eval/loss", 2.5}};
  EXPECT_EQ(Scalars(events, 1), expected);
  const auto read = ReadEvents(TempFolder::Read(events.path()));
  EXPECT_EQ(read.at(2).tensors.at(0).first, "run/settings");
  EXPECT_EQ(read.at(3).step, -1);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(TrainingEventsTest, WarnsOnceAndGoesOn) {
  TrainingEvents events = Make();
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit tight = {.rlim_cur = 400, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  for (int64_t step = 0; step < 20; ++step) {
    events.Write({.step = step});
    events.WriteEvaluation({.step = step});
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(events.status().ok());
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0],
            std::string(events.status().message()) + "; the run goes on, but TensorBoard's curves end here");
  EXPECT_GT(ReadEvents(TempFolder::Read(events.path())).size(), 2u);
}

TEST_F(TrainingEventsTest, SaysThatNotEvenTheBeginningFoundRoom) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit tight = {.rlim_cur = 10, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  TrainingEvents events = Make();
  events.Write({.step = 1});
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(TempFolder::Read(events.path()), "");
}

}  // namespace
}  // namespace ft
