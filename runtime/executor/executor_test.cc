// The whole runtime on a plan made by hand: real kernels, real collectives, ranks as threads.
#include "runtime/executor/executor.h"

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/backends/cpu/device/cpu_device.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/null/null_communicator.h"
#include "runtime/backends/null/null_device.h"
#include "runtime/base/temp_folder.h"
#include "runtime/collective/create.h"
#include "runtime/collective/testing/test_world.h"
#include "runtime/executor/load_weights.h"
#include "runtime/executor/save_weights.h"
#include "runtime/executor/training_loop.h"
#include "runtime/plan/testing/tiny_plan.h"
#include "runtime/plan/verify_plan.h"

namespace ft {
namespace {

std::string Text() {
  std::string text;
  for (int i = 0; i < 4000; ++i) text += "the quick brown fox "[i * i % 20];
  return text;
}

// A metrics line's loss and gradient norm, as text with all digits.
std::vector<std::string> ReadCurve(const std::string& path) {
  std::vector<std::string> curve;
  std::istringstream lines(TempFolder::Read(path));
  for (std::string line; std::getline(lines, line);) curve.push_back(line.substr(0, line.find(",\"lr\"")));
  return curve;
}

struct RunSettings {
  bool shard = true;
  int ranks = 1;
  int64_t steps = 20;
  std::string init = {};          // safetensors to start from
  std::string save_weights = {};  // and to end with
};

// Trains with the given ranks; the loss curve of rank 0.
std::vector<std::string> Train(const RunSettings& settings) {
  const TempFolder folder;
  const std::string data = folder.Write("text.txt", Text()), metrics = folder.Path("m.jsonl");
  const proto::Plan plan = TinyPlan({.shard = settings.shard});
  const BoundPlan bound = *BindPlan(plan, *MeshFor(plan, settings.ranks));
  KernelRegistry kernels;
  RegisterCpuKernels(kernels);
  ft::testing::TestWorld world(settings.ranks);
  world.RunThreads([&](const Rendezvous& rendezvous) {
    auto communicators = CreateCommunicators(rendezvous, 2, {});
    ASSERT_TRUE(communicators.ok()) << communicators.status();
    CpuDevice device(kernels, {});
    const int rank = rendezvous.rank();
    auto executor =
        Executor::Create(plan, bound, device, {(*communicators)[0].get(), (*communicators)[1].get()}, rank);
    ASSERT_TRUE(executor.ok()) << executor.status();
    EXPECT_EQ((*executor)->arena_bytes(), bound.arena_bytes());
    auto dataset = OpenDataset(data, 256, 16);
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    const BatchSampler sampler(**dataset, 2, rank, settings.ranks, 42, true);
    auto loop = TrainingLoop::Create(
        plan, **executor, {.steps = settings.steps, .lr = 0.05, .rank = rank, .world_size = settings.ranks});
    ASSERT_TRUE(loop.ok()) << loop.status();
    if (settings.init.empty()) {
      ASSERT_TRUE(loop->Initialize().ok());
    } else {
      ASSERT_TRUE(LoadWeights(plan, **executor, settings.init).ok());
    }
    std::unique_ptr<MetricsFile> file;
    if (rank == 0) file = *MetricsFile::Open(metrics);
    const absl::Status status = loop->Run(sampler, {.metrics = file.get()});
    ASSERT_TRUE(status.ok()) << status;
    if (settings.save_weights.empty()) return;
    const absl::Status saved = SaveWeights(plan, **executor, *(*communicators)[0], settings.save_weights);
    ASSERT_TRUE(saved.ok()) << saved;
  });
  return ReadCurve(metrics);
}

double LossOf(const std::string& line) { return std::stod(line.substr(line.find("\"loss\":") + 7)); }

TEST(TinyPlanTest, IsValid) {
  for (const bool shard : {false, true}) EXPECT_TRUE(VerifyPlan(TinyPlan({.shard = shard})).ok());
}

TEST(ExecutorTest, LearnsAndGivesTheSameBitsForBothStrategies) {
  std::map<int, std::vector<std::string>> first;
  for (int ranks : {1, 2, 3, 4}) {
    const std::vector<std::string> sharded = Train({.shard = true, .ranks = ranks});
    const std::vector<std::string> whole = Train({.shard = false, .ranks = ranks});
    ASSERT_EQ(sharded.size(), 20u);
    EXPECT_EQ(sharded, whole) << ranks << " ranks";
    EXPECT_EQ(sharded, Train({.shard = true, .ranks = ranks})) << "a second run";
    EXPECT_LT(LossOf(sharded.back()), 0.7 * LossOf(sharded.front()));
    first[ranks] = sharded;
  }
  EXPECT_NE(first[1], first[2]);  // another batch, another curve: the comparison is not of constants
}

TEST(ExecutorTest, WeightsGoThroughAFileUnchanged) {
  const TempFolder folder;
  const std::string two = folder.Path("two.safetensors"), again = folder.Path("again.safetensors"),
                    one = folder.Path("one.safetensors");
  Train({.shard = true, .ranks = 2, .save_weights = two});
  Train({.shard = true, .ranks = 3, .steps = 0, .init = two, .save_weights = again});
  Train({.shard = false, .ranks = 1, .steps = 0, .init = two, .save_weights = one});
  EXPECT_GT(TempFolder::Read(two).size(), 2 * 256 * 12 * 4u);
  EXPECT_EQ(TempFolder::Read(two), TempFolder::Read(again));
  EXPECT_EQ(TempFolder::Read(two), TempFolder::Read(one));
  // And training goes on from them.
  EXPECT_LT(LossOf(Train({.ranks = 2, .steps = 1, .init = two})[0]),
            0.8 * LossOf(Train({.ranks = 2, .steps = 1})[0]));
}

// Plans that only a device can refuse.
absl::Status CreateError(const proto::Plan& plan) {
  KernelRegistry kernels;
  RegisterCpuKernels(kernels);
  CpuDevice device(kernels, {});
  NullCommunicator gather(0, 1), reduce(0, 1);
  const BoundPlan bound = *BindPlan(plan, {1, 1});
  return Executor::Create(plan, bound, device, {&gather, &reduce}, 0).status();
}

TEST(ExecutorTest, MissingKernelIsNamed) {
  proto::Plan plan = TinyPlan();
  plan.mutable_programs(1)->mutable_instructions(InstructionIndex(plan, "embedding"))->set_kernel("embeding");
  const absl::Status status = CreateError(plan);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(status.message()),
            "train_step, instruction 2 (embeding, layer bigram), i32 on cpu: the cpu device has no kernel "
            "'embeding'");
}

TEST(ExecutorTest, RefusingKernelIsPlaced) {
  proto::Plan plan = TinyPlan();
  plan.mutable_programs(1)
      ->mutable_instructions(InstructionIndex(plan, "clip_coefficient"))
      ->clear_attributes();
  const absl::Status status = CreateError(plan);
  EXPECT_NE(std::string(status.message()).find("train_step, instruction 13 (clip_coefficient, layer bigram)"),
            std::string::npos)
      << status;
  EXPECT_NE(std::string(status.message()).find("max_norm"), std::string::npos) << status;
}

TEST(ExecutorTest, PartOfTheRanksIsRefused) {
  KernelRegistry kernels;
  RegisterCpuKernels(kernels);
  CpuDevice device(kernels, {});
  const proto::Plan plan = TinyPlan();
  NullCommunicator gather(0, 4), reduce(0, 4);
  const BoundPlan bound = *BindPlan(plan, {2, 2});
  const absl::Status status = Executor::Create(plan, bound, device, {&gather, &reduce}, 0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
}

// Fails the n-th reduce_scatter.
class FailingCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  absl::Status AllGather(const void* src, void* dst, size_t bytes, const CollectiveLabel&) override {
    if (src != dst) std::memcpy(dst, src, bytes);
    return absl::OkStatus();
  }
  absl::Status ReduceScatter(const void*, void*, size_t, DType, float, const CollectiveLabel&) override {
    return absl::UnavailableError("rank 3 was lost");
  }
  absl::Status AllReduce(void*, size_t, DType, float, const CollectiveLabel&) override {
    return absl::OkStatus();
  }
  absl::Status Broadcast(void*, size_t, int, const CollectiveLabel&) override { return absl::OkStatus(); }
  absl::Status Barrier(const CollectiveLabel&) override { return absl::OkStatus(); }
  void Abort(absl::Status reason) override { aborted = std::move(reason); }
  size_t staging_bytes() const override { return 0; }
  absl::Status aborted;
};

TEST(ExecutorTest, FailedCollectiveStopsTheStepAndIsPlaced) {
  KernelRegistry kernels;
  RegisterCpuKernels(kernels);
  CpuDevice device(kernels, {});
  const proto::Plan plan = TinyPlan();
  const BoundPlan bound = *BindPlan(plan, {1, 1});
  FailingCommunicator gather, reduce;
  auto executor = Executor::Create(plan, bound, device, {&gather, &reduce}, 0);
  ASSERT_TRUE(executor.ok()) << executor.status();
  const absl::Status status = (*executor)->Run(1);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(std::string(status.message()),
            "train_step, instruction 7 (reduce_scatter bigram): rank 3 was lost");
  EXPECT_FALSE(gather.aborted.ok());
  EXPECT_FALSE(reduce.aborted.ok());
  EXPECT_EQ((*executor)->Run(1), status);  // nothing runs after a failure
}

TEST(NullDeviceTest, WalksAnyWorldSizeInSimulatedTime) {
  double before = 0;
  for (int ranks : {1, 8, 512}) {
    proto::Plan plan = TinyPlan();
    for (proto::Instruction& instruction : *plan.mutable_programs(1)->mutable_instructions())
      instruction.set_flops(1'000'000'000);
    const BoundPlan bound = *BindPlan(plan, {1, ranks});
    NullDevice device({.flops_per_s = 1e12,
                       .bytes_per_s = 1e12,
                       .link_bytes_per_s = 1e9,
                       .link_latency_s = 1e-5,
                       .launch_s = 0});
    NullCommunicator gather(0, ranks), reduce(0, ranks);
    auto executor = Executor::Create(plan, bound, device, {&gather, &reduce}, 0);
    ASSERT_TRUE(executor.ok()) << executor.status();
    ASSERT_TRUE((*executor)->Run(1).ok());
    // Seven kernels of 1 ms, and collectives that no kernel hides: for 1 rank they are free.
    const double seconds = device.now();
    if (ranks == 1) {
      EXPECT_DOUBLE_EQ(seconds, 7e-3);
    }
    EXPECT_GT(seconds, before);
    before = seconds;
    ASSERT_TRUE((*executor)->Run(1).ok());
    EXPECT_NEAR(device.now(), 2 * seconds, 1e-12);
  }
}

}  // namespace
}  // namespace ft
