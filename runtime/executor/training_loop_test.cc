// What the training loop writes into the ports of a plan, in which order it runs the programs, and what it
// makes of their answers.
#include "runtime/executor/training_loop.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/backends/cpu/device/cpu_device.h"
#include "runtime/base/testing/temp_folder.h"
#include "runtime/executor/testing/probe_plan.h"

namespace ft {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// A call with its inputs copied.
struct Seen {
  std::string program;
  std::vector<int32_t> tokens = {}, targets = {};
  std::vector<int64_t> rng;
  float lr;
  int64_t step;
};

class TrainingLoopTest : public testing::Test {
 protected:
  // Byte i of the data is i: its sequence k begins with token 4k.
  std::string Data(const std::string& name, int sequences) const {
    std::string text;
    for (int i = 0; i <= sequences * kProbeSeqLen; ++i) text.push_back(static_cast<char>(i));
    return folder_.Write(name, text);
  }

  void SetUp() override {
    data_ = *OpenDataset(Data("data.txt", 20), 256, kProbeSeqLen, DataFormat::kText);
    eval_data_ = *OpenDataset(Data("eval.txt", 5), 256, kProbeSeqLen, DataFormat::kText);
  }

  // One rank, with the metrics elsewhere.
  absl::Status TrainInto(const std::string& metrics, const TrainingOptions& options) {
    metrics_path_ = metrics;
    return Train(options, 1, false, false, {});
  }

  // Runs as rank `options.rank` of options.world_size, alone. `answer` fills the outputs of train_step.
  absl::Status Train(TrainingOptions options, int micro_steps, bool scaler, bool evaluate,
                     const std::function<void(const ProbeCall&)>& answer) {
    KernelRegistry kernels;
    RegisterProbe(kernels, [&](const ProbeCall& call) { OnCall(call, answer); });
    const proto::Plan plan = ProbePlan(micro_steps, scaler);
    const BoundPlan bound = *BindPlan(plan, {1, 1}, DeviceClass::kCpu);
    CpuDevice device(kernels, {});
    auto executor = Executor::Create(plan, bound, device, {}, 0);
    EXPECT_TRUE(executor.ok()) << executor.status();
    executor_ = executor->get();
    auto loop = TrainingLoop::Create(plan, **executor, options);
    EXPECT_TRUE(loop.ok()) << loop.status();
    const BatchSampler sampler(*data_, kProbeBatch, options.rank, options.world_size, 0, false);
    const EvaluationBatches batches(*eval_data_, kProbeBatch, options.rank, options.world_size, 0);
    auto evaluator = Evaluator::Create(plan, **executor, batches, options.seed, options.rank);
    EXPECT_TRUE(evaluator.ok()) << evaluator.status();
    const auto metrics = *MetricsFile::Open(metrics_path_);
    EXPECT_TRUE(loop->Initialize().ok());
    loop_ = &*loop;
    const absl::Status status =
        loop->Run(sampler,
                  {.metrics = metrics.get(),
                   .warn = [&](const std::string& line) { warnings_.push_back(line); },
                   .compute_time = compute_time_,
                   .boundary = boundary_},
                  evaluate ? &*evaluator : nullptr);
    diverged_ = loop->diverged();
    return status;
  }

  void OnCall(const ProbeCall& call, const std::function<void(const ProbeCall&)>& answer) {
    Seen seen{.program = call.program, .rng = {call.rng, call.rng + 3}, .lr = call.lr, .step = call.step};
    if (call.tokens != nullptr) {
      seen.tokens.assign(call.tokens, call.tokens + kProbeBatch * kProbeSeqLen);
      seen.targets.assign(call.targets, call.targets + kProbeBatch * kProbeSeqLen);
    }
    seen_.push_back(seen);
    if (in_kernel_ && call.program.starts_with("train_")) in_kernel_(call);
    if (call.loss_sum != nullptr) {
      call.loss_sum[0] = call.loss_sum[1] = 0;
      for (const int32_t target : seen.targets) {
        const bool counts = target >= 0 && !evaluates_nothing_;
        call.loss_sum[0] += counts ? target : 0;
        call.loss_sum[1] += counts ? 1 : 0;
      }
    }
    if (call.loss != nullptr) {
      *call.loss = *call.grad_norm = 1;
      if (answer) answer(call);
    }
  }

  std::vector<nlohmann::json> Metrics() const {
    std::vector<nlohmann::json> lines;
    std::istringstream file(TempFolder::Read(folder_.Path("m.jsonl")));
    for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  // Whether it becomes true while the caller waits.
  static bool Becomes(const std::function<bool()>& what) {
    const auto begin = std::chrono::steady_clock::now();
    while (!what()) {
      if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(20)) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  // The first token that the host has written for the next run of a program.
  int32_t NextToken(const std::string& program) const {
    const Tensor tokens = executor_->Input(*executor_->FindProgram(program), "tokens");
    return std::atomic_ref(*static_cast<int32_t*>(tokens.data)).load(std::memory_order_acquire);
  }

  TempFolder folder_;
  bool evaluates_nothing_ = false;  // no target counts
  std::string metrics_path_ = folder_.Path("m.jsonl");
  Executor* executor_ = nullptr;  // both of the run
  TrainingLoop* loop_ = nullptr;
  std::unique_ptr<Dataset> data_, eval_data_;
  std::vector<Seen> seen_;
  std::vector<std::string> warnings_;
  bool diverged_ = false;
  std::function<void(const ProbeCall&)> in_kernel_;  // of training
  std::function<std::optional<ComputeSpread>(int64_t, double)> compute_time_;
  std::function<absl::StatusOr<bool>(int64_t, std::optional<double>)> boundary_;
};

TEST_F(TrainingLoopTest, AStepIsItsMicroSteps) {
  ASSERT_TRUE(Train({.steps = 2, .seed = 7, .rank = 1, .world_size = 2}, 3, false, false, {}).ok());
  ASSERT_EQ(seen_.size(), 7u);
  EXPECT_EQ(seen_[0].program, "init");
  EXPECT_EQ(seen_[0].rng, (std::vector<int64_t>{7, 0, 1}));
  for (int64_t m = 0; m < 6; ++m) {
    const Seen& seen = seen_[m + 1];
    EXPECT_EQ(seen.program, m % 3 == 2 ? "train_step" : "train_micro");
    EXPECT_EQ(seen.rng, (std::vector<int64_t>{7, m, 1}));
    const int64_t sequence = (m * 2 + 1) * kProbeBatch % 20;
    EXPECT_EQ(seen.tokens[0], sequence * kProbeSeqLen) << m;
    EXPECT_EQ(seen.targets.back(), (sequence + kProbeBatch) * kProbeSeqLen) << m;
    if (m % 3 == 2) {
      EXPECT_EQ(seen.step, m / 3);
    }
  }
  const auto metrics = Metrics();
  ASSERT_EQ(metrics.size(), 2u);
  const double seconds = metrics[1]["step_ms"].get<double>() / 1e3;
  EXPECT_NEAR(metrics[1]["samples_per_s"].get<double>() * seconds, 3 * kProbeBatch * 2, 1e-6);
  EXPECT_NEAR(metrics[1]["tokens_per_s"].get<double>() * seconds, 3 * kProbeBatch * kProbeSeqLen * 2, 1e-6);
}

// A kernel that does not end before they are: what it was given stays.
TEST_F(TrainingLoopTest, TheNextBatchIsReadAndTheLastStepReportedWhileAStepRuns) {
  size_t kernels = 0;
  in_kernel_ = [&](const ProbeCall& call) {
    const int64_t m = call.rng[1];
    const auto first_of = [](int64_t micro_step) {
      return static_cast<int32_t>(micro_step * kProbeBatch % 20 * kProbeSeqLen);
    };
    if (m < 5) {
      EXPECT_TRUE(Becomes([&] { return NextToken("train_step") == first_of(m + 1); })) << m;
    }
    EXPECT_EQ(call.tokens[0], first_of(m));
    EXPECT_TRUE(Becomes([&] { return Metrics().size() == static_cast<size_t>(m / 2); })) << m;
    ++kernels;
  };
  ASSERT_TRUE(Train({.steps = 3}, 2, false, false, {}).ok());
  EXPECT_EQ(kernels, 6u);
  EXPECT_EQ(Metrics().size(), 3u) << "the last one after its step";
}

TEST_F(TrainingLoopTest, AStepIsReportedBeforeWhatComesAfterIt) {
  boundary_ = [&](int64_t steps_done, std::optional<double>) -> absl::StatusOr<bool> {
    EXPECT_EQ(Metrics().size(), static_cast<size_t>(steps_done - 1));
    EXPECT_TRUE(loop_->Report().ok());
    EXPECT_EQ(Metrics().size(), static_cast<size_t>(steps_done));
    EXPECT_TRUE(loop_->Report().ok());
    return false;
  };
  ASSERT_TRUE(Train({.steps = 3}, 1, false, false, {}).ok());
  EXPECT_EQ(Metrics().size(), 3u);
  boundary_ = [](int64_t steps_done, std::optional<double>) -> absl::StatusOr<bool> {
    if (steps_done < 2) return false;
    return absl::UnavailableError("rank 3 was lost");
  };
  EXPECT_FALSE(Train({.steps = 3}, 1, false, false, {}).ok());
  EXPECT_EQ(Metrics().size(), 2u) << "a run that fails, too, says what was done";
}

TEST_F(TrainingLoopTest, MetricsThatCannotBeWrittenEndTheRun) {
  EXPECT_EQ(TrainInto("/dev/full", {.steps = 5}).code(), absl::StatusCode::kResourceExhausted);
  // Not before the next step had begun, and not after it.
  EXPECT_EQ(seen_.size(), 3u);
}

// Between two steps others may run programs that have the same inputs.
TEST_F(TrainingLoopTest, ABatchThatWasOverwrittenIsReadAgain) {
  boundary_ = [&](int64_t, std::optional<double>) -> absl::StatusOr<bool> {
    const int program = *executor_->FindProgram("eval_step");
    std::memset(executor_->Input(program, "tokens").data, 0, 4);
    EXPECT_TRUE(executor_->Run(program).ok());
    return false;
  };
  ASSERT_TRUE(Train({.steps = 3}, 1, false, false, {}).ok());
  std::vector<int32_t> first;
  for (const Seen& seen : seen_)
    if (seen.program == "train_step") first.push_back(seen.tokens[0]);
  EXPECT_EQ(first, (std::vector<int32_t>{0, 8, 16}));
}

TEST_F(TrainingLoopTest, TheRateIsThatOfTheAppliedSteps) {
  const LrSchedule lr = {.kind = LrSchedule::Kind::kLinear, .peak = 0.5, .warmup_steps = 2, .total_steps = 6};
  ASSERT_TRUE(Train({.steps = 6, .lr = lr}, 1, false, false, [](const ProbeCall& call) {
                if (call.step == 1 && *call.rng == 42 && call.rng[1] == 1) *call.loss = kNan;
              }).ok());
  const auto metrics = Metrics();
  ASSERT_EQ(metrics.size(), 6u);
  const int64_t applied[] = {0, 1, 1, 2, 3, 4};
  for (int step = 0; step < 6; ++step) {
    EXPECT_EQ(seen_[step + 1].step, applied[step]);
    EXPECT_EQ(seen_[step + 1].lr, static_cast<float>(lr.At(applied[step])));
    EXPECT_EQ(metrics[step]["lr"], lr.At(applied[step]));
    EXPECT_EQ(metrics[step].contains("skipped"), step == 1);
  }
  EXPECT_EQ(metrics[1]["loss_nonfinite"], "nan");
}

TEST_F(TrainingLoopTest, BadStepsAreNamedAndEndTheRun) {
  const absl::Status status =
      Train({.steps = 10, .world_size = 4, .max_bad_steps = 2}, 1, false, false, [](const ProbeCall& call) {
        const int64_t step = call.rng[1];
        if (step == 2 || step == 5) *call.loss = kNan;
        if (step == 4) *call.grad_norm = kInf;
      });
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(status.message()),
            "step 6/10: loss nan: step not applied, 2 in a row: training has diverged; try a smaller --lr");
  EXPECT_TRUE(diverged_);
  EXPECT_EQ(warnings_,
            (std::vector<std::string>{
                "step 3/10: loss nan: step not applied (1 in a row, the run ends at 2)",
                "step 5/10: gradient norm inf: step not applied (1 in a row, the run ends at 2)"}));
  const auto metrics = Metrics();
  ASSERT_EQ(metrics.size(), 6u);  // the last one is written, too
  EXPECT_TRUE(metrics[5]["loss"].is_null());
  EXPECT_EQ(metrics[5]["skipped"], true);
}

TEST_F(TrainingLoopTest, AStepThatIsNotFiniteIsReplayed) {
  const auto answer = [](const ProbeCall& call) {
    if (call.rng[1] == 5) *call.loss = kNan;  // of step 2, the last of its three micro-steps
  };
  ASSERT_TRUE(Train({.steps = 4, .lr = {.peak = 0.5}, .seed = 7}, 3, false, false, answer).ok());
  const std::vector<Seen> plain = std::move(seen_);
  seen_.clear();
  warnings_.clear();
  ASSERT_TRUE(
      Train({.steps = 4, .lr = {.peak = 0.5}, .seed = 7, .find_nan = true}, 3, false, false, answer).ok());
  EXPECT_EQ(
      warnings_,
      (std::vector<std::string>{
          "step 2/4: loss nan: step not applied (1 in a row, the run ends at 3)",
          "step 2/4 is not finite: micro-step 3, probe (train_step 0): 1 of 1 elements of result 1 is NaN, "
          "first at 0; its inputs were finite"}));
  // init and two steps, the second one again, and the others.
  ASSERT_EQ(plain.size(), 13u);
  ASSERT_EQ(seen_.size(), 16u);
  for (size_t i = 0; i < seen_.size(); ++i) {
    const Seen &seen = seen_[i], &before = plain[i < 7 ? i : i - 3];
    EXPECT_EQ(seen.program, before.program) << i;
    EXPECT_EQ(seen.tokens, before.tokens) << i;
    EXPECT_EQ(seen.targets, before.targets) << i;
    EXPECT_EQ(seen.rng, before.rng) << i;
    EXPECT_EQ(seen.lr, before.lr) << i;
    EXPECT_EQ(seen.step, before.step) << i;
  }
}

TEST_F(TrainingLoopTest, OnlyTheFirstInARowIsReplayedAndTheEndSaysWhatItWas) {
  const absl::Status status =
      Train({.steps = 9, .max_bad_steps = 2, .find_nan = true}, 1, false, false, [](const ProbeCall& call) {
        if (call.rng[1] == 1 || call.rng[1] >= 3) *call.grad_norm = kInf;
      });
  EXPECT_EQ(
      std::string(status.message()),
      "step 5/9: gradient norm inf: step not applied, 2 in a row: training has diverged; try a smaller "
      "--lr; step 4/9 is not finite: probe (train_step 0): 1 of 1 elements of result 2 is infinite, first "
      "at 0; its inputs were finite");
  EXPECT_EQ(warnings_.size(), 4u);
  EXPECT_EQ(seen_.size(), 1u + 5u + 2u);
}

TEST_F(TrainingLoopTest, AReplayThatIsFiniteSaysSo) {
  int times = 0;
  ASSERT_TRUE(Train({.steps = 3, .find_nan = true}, 1, false, false, [&](const ProbeCall& call) {
                if (call.rng[1] == 1 && ++times == 1) *call.loss = kNan;
              }).ok());
  EXPECT_EQ(times, 2);
  EXPECT_EQ(warnings_,
            (std::vector<std::string>{"step 2/3: loss nan: step not applied (1 in a row, the run ends at 3)",
                                      "step 2/3 is not finite: replayed it is finite: a kernel that does not "
                                      "repeat itself, or a fault of the hardware"}));
}

TEST_F(TrainingLoopTest, AReplayHasTheLossScaleOfItsStep) {
  std::vector<float> scales;
  ASSERT_TRUE(Train({.steps = 3, .find_nan = true}, 1, true, false, [&](const ProbeCall& call) {
                scales.push_back(call.scaler[0]);
                if (call.rng[1] != 1) return;
                *call.loss = kNan;
                call.scaler[0] /= 2;
              }).ok());
  EXPECT_EQ(scales, (std::vector<float>{65536, 65536, 65536, 32768}));
}

TEST_F(TrainingLoopTest, TheScalerIsOfTheProgram) {
  // Overflows until the scale is below 5000, as a GradScaler would find it.
  ASSERT_TRUE(Train({.steps = 8, .max_bad_steps = 1}, 1, true, false, [](const ProbeCall& call) {
                if (call.scaler[0] < 5000) return;
                *call.grad_norm = kInf;
                call.scaler[0] /= 2;
              }).ok());
  const auto metrics = Metrics();
  const double scales[] = {65536, 32768, 16384, 8192, 4096, 4096, 4096, 4096};
  for (int step = 0; step < 8; ++step) {
    EXPECT_EQ(metrics[step]["loss_scale"], scales[step]);
    EXPECT_EQ(metrics[step].contains("skipped"), step < 4);
    EXPECT_EQ(seen_[step + 1].step, std::max(0, step - 4));
  }
  EXPECT_EQ(warnings_.size(), 4u);
}

TEST_F(TrainingLoopTest, EvaluatesEverySequenceOnce) {
  ASSERT_TRUE(Train({.steps = 5, .seed = 3, .eval_every = 2}, 1, false, true, {}).ok());
  // After steps 1 and 3, and after the last.
  std::vector<int64_t> at;
  for (const nlohmann::json& line : Metrics()) {
    if (!line.contains("eval_loss")) continue;
    at.push_back(line["step"]);
    // Targets 1 ... 20 of the 5 sequences; the sixth row is filled up.
    EXPECT_EQ(line["eval_tokens"], 20);
    EXPECT_EQ(line["eval_loss"], 10.5);
  }
  EXPECT_EQ(at, (std::vector<int64_t>{1, 3, 4}));
  std::vector<int64_t> numbers;
  for (const Seen& seen : seen_) {
    if (seen.program == "eval_step") numbers.push_back(seen.rng[1]);
  }
  EXPECT_EQ(numbers, (std::vector<int64_t>{0, 1, 2, 0, 1, 2, 0, 1, 2}));
}

TEST_F(TrainingLoopTest, AnEvaluationOfNothingHasNoLoss) {
  evaluates_nothing_ = true;
  std::vector<std::optional<double>> losses;
  boundary_ = [&](int64_t, std::optional<double> eval_loss) -> absl::StatusOr<bool> {
    losses.push_back(eval_loss);
    return false;
  };
  ASSERT_TRUE(Train({.steps = 2}, 1, false, true, {}).ok());
  EXPECT_EQ(losses, (std::vector<std::optional<double>>{std::nullopt, std::nullopt}));
  EXPECT_EQ(warnings_,
            (std::vector<std::string>{"step 2/2: the evaluation has no loss: none of its targets counts"}));
  EXPECT_EQ(Metrics().back().dump(), R"({"eval_loss":null,"eval_tokens":0,"step":1})");
}

TEST_F(TrainingLoopTest, NoNumberIsSaidToHaveASign) {
  ASSERT_TRUE(Train({.steps = 2}, 1, false, false, [](const ProbeCall& call) {
                (call.step == 0 && call.rng[1] == 0 ? *call.loss : *call.grad_norm) = -kNan;
              }).ok());
  EXPECT_EQ(warnings_, (std::vector<std::string>{
                           "step 1/2: loss nan: step not applied (1 in a row, the run ends at 3)",
                           "step 2/2: gradient norm nan: step not applied (2 in a row, the run ends at 3)"}));
}

TEST_F(TrainingLoopTest, AnEvaluationAfterTheLastStepIsTheLast) {
  ASSERT_TRUE(Train({.steps = 4, .eval_every = 2}, 1, false, true, {}).ok());
  const auto metrics = Metrics();
  EXPECT_EQ(metrics.size(), 6u);
  EXPECT_EQ(metrics.back()["step"], 3);
  ASSERT_TRUE(Train({.steps = 0}, 1, false, true, {}).ok());
  ASSERT_EQ(Metrics().size(), 1u);
  EXPECT_EQ(Metrics()[0]["step"], -1);
}

// After each step and its evaluation; nothing is done any more when it says so.
TEST_F(TrainingLoopTest, ABoundaryMayEndTheRun) {
  std::vector<int64_t> boundaries;
  boundary_ = [&](int64_t steps_done, std::optional<double>) -> absl::StatusOr<bool> {
    boundaries.push_back(steps_done);
    return steps_done == 4;
  };
  ASSERT_TRUE(Train({.steps = 9, .eval_every = 2}, 1, false, true, {}).ok());
  EXPECT_EQ(boundaries, (std::vector<int64_t>{1, 2, 3, 4}));
  const auto metrics = Metrics();
  ASSERT_EQ(metrics.size(), 6u);  // four steps, two evaluations
  EXPECT_TRUE(metrics.back().contains("eval_loss"));
  EXPECT_EQ(metrics.back()["step"], 3);
  boundary_ = [](int64_t, std::optional<double>) -> absl::StatusOr<bool> {
    return absl::UnavailableError("rank 3 was lost");
  };
  EXPECT_EQ(Train({.steps = 9}, 1, false, true, {}), absl::UnavailableError("rank 3 was lost"));
  boundaries.clear();
  boundary_ = [&](int64_t steps_done, std::optional<double>) {
    boundaries.push_back(steps_done);
    return absl::StatusOr<bool>(false);
  };
  ASSERT_TRUE(Train({.steps = 3}, 2, false, true, {}).ok());
  EXPECT_EQ(boundaries, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(Metrics().size(), 4u) << "the evaluation at the end is still one";
}

// Kernels take 20 ms; copies and collectives are none in this plan.
TEST_F(TrainingLoopTest, ComputeTimeIsToldAndWhatIsKnownOfAllWritten) {
  std::vector<double> told;
  compute_time_ = [&](int64_t step, double ms) -> std::optional<ComputeSpread> {
    EXPECT_EQ(step, static_cast<int64_t>(told.size()));
    told.push_back(ms);
    if (step == 0) return std::nullopt;
    return ComputeSpread{.step = step - 1, .min_ms = 1, .mean_ms = 2.5, .max_ms = 4, .slowest_rank = 3};
  };
  ASSERT_TRUE(Train({.steps = 3}, 1, false, false, [](const ProbeCall&) {
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
              }).ok());
  const auto metrics = Metrics();
  ASSERT_EQ(metrics.size(), 3u);
  for (size_t step = 0; step < 3; ++step) {
    EXPECT_GE(told[step], 20);
    EXPECT_NEAR(told[step],
                metrics[step]["step_ms"].get<double>() - metrics[step]["exposed_ms"].get<double>(), 1e-9);
  }
  EXPECT_FALSE(metrics[0].contains("compute_ms_max"));
  EXPECT_EQ(metrics[2]["compute_step"], 1);
  EXPECT_EQ(metrics[2]["compute_ms_min"], 1);
  EXPECT_EQ(metrics[2]["compute_ms_mean"], 2.5);
  EXPECT_EQ(metrics[2]["compute_ms_max"], 4);
  EXPECT_EQ(metrics[2]["slowest_rank"], 3);
}

TEST_F(TrainingLoopTest, EvaluationDoesNotChangeWhatTrainingSees) {
  const auto inputs = [&](bool evaluate) {
    seen_.clear();
    EXPECT_TRUE(Train({.steps = 4, .eval_every = 1}, 2, false, evaluate, {}).ok());
    std::vector<std::vector<int64_t>> all;
    for (const Seen& seen : seen_) {
      if (seen.program == "eval_step") continue;
      std::vector<int64_t>& one = all.emplace_back(seen.rng);
      one.insert(one.end(), seen.tokens.begin(), seen.tokens.end());
      one.insert(one.end(), seen.targets.begin(), seen.targets.end());
      one.push_back(seen.step);
    }
    return all;
  };
  EXPECT_EQ(inputs(true), inputs(false));
}

TEST_F(TrainingLoopTest, APlanWithoutThePrograms) {
  KernelRegistry kernels;
  RegisterProbe(kernels, {});
  CpuDevice device(kernels, {});
  const auto error = [&](proto::Plan plan) {
    const BoundPlan bound = *BindPlan(plan, {1, 1}, DeviceClass::kCpu);
    auto executor = Executor::Create(plan, bound, device, {}, 0);
    EXPECT_TRUE(executor.ok()) << executor.status();
    absl::Status status = TrainingLoop::Create(plan, **executor, {}).status();
    const EvaluationBatches batches(*eval_data_, kProbeBatch, 0, 1, 0);
    if (status.ok()) status = Evaluator::Create(plan, **executor, batches, 0, 0).status();
    return std::string(status.message());
  };
  proto::Plan plan = ProbePlan(2, false);
  plan.mutable_programs(1)->set_name("other");
  EXPECT_EQ(error(plan), "the plan has no program 'train_micro'");
  plan = ProbePlan(1, false);
  plan.mutable_programs(2)->mutable_outputs(0)->set_name("other");
  EXPECT_EQ(error(plan), "the plan's eval_step has no port 'loss_sum'");
  plan = ProbePlan(1, true);
  plan.mutable_programs(1)->mutable_outputs(1)->mutable_operand()->add_shape(32);
  EXPECT_EQ(error(plan),
            "port 'grad_norm' of the plan's train_step holds 32 elements of f32, expected 1 of f32");
}

}  // namespace
}  // namespace ft
