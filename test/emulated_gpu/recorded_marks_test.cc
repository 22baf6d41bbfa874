// What a compiled plan records on a GPU, by the log of the emulated driver.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/backends/cuda/device/open_cuda_device.h"
#include "runtime/backends/null/null_communicator.h"
#include "runtime/collective/plan_communicators.h"
#include "runtime/executor/executor.h"
#include "runtime/plan/bind.h"
#include "test/doubles/cuda/emulated_driver.h"
#include "test/support/compile_plan.h"

namespace ft {
namespace {

// What a recording of the training step on two ranks holds, with a driver that stores words or does not.
std::vector<cuda::emulation::Call> Recorded(const std::string& strategy, bool stores) {
  cuda::emulation::Machine() = {.stores = stores};
  absl::StatusOr<cuda::OpenedDevice> opened = cuda::OpenCudaDevice(0, {});
  EXPECT_TRUE(opened.ok()) << opened.status();
  const proto::Plan plan =
      CompilePlan("gpt2", "debug", [&](compiler::CompileOptions& options) { options.strategy = strategy; });
  const auto bound =
      BindPlan(plan, strategy == "no_shard" ? Mesh{.replica = 2, .shard = 1} : Mesh{.replica = 1, .shard = 2},
               DeviceClass::kCuda);
  EXPECT_TRUE(bound.ok()) << bound.status();
  std::vector<std::unique_ptr<Communicator>> made;
  for (const CommunicatorGroup& group : CommunicatorGroups(plan, bound->mesh, 0))
    made.push_back(std::make_unique<NullCommunicator>(0, static_cast<int>(group.ranks.size())));
  PlanCommunicators communicators = PlanCommunicators(plan, bound->mesh, 0, std::move(made));
  const auto executor = Executor::Create(plan, *bound, *opened->device, communicators.table(), 0);
  EXPECT_TRUE(executor.ok()) << executor.status();
  int step = 0;
  while (plan.programs(step).name() != "train_step") ++step;
  auto& driver = static_cast<cuda::emulation::EmulatedDriver&>(*opened->driver);
  EXPECT_EQ((*executor)->Run(step), absl::OkStatus());
  driver.ClearLog();
  EXPECT_EQ((*executor)->Run(step), absl::OkStatus());
  std::vector<cuda::emulation::Call> log = driver.Log();
  std::erase_if(log, [](const cuda::emulation::Call& call) { return !call.captured; });
  return log;
}

int Count(const std::vector<cuda::emulation::Call>& log, const std::vector<std::string>& names) {
  return static_cast<int>(std::count_if(log.begin(), log.end(), [&](const auto& call) {
    return std::any_of(names.begin(), names.end(),
                       [&](const auto& name) { return call.what.ends_with(name); });
  }));
}

class RecordedMarks : public testing::TestWithParam<const char*> {};

TEST_P(RecordedMarks, AreNoKernels) {
  const std::vector<std::string> kernels = {"::TaskBegin", "::TaskEnd", "::WaitBegin", "::WaitEnd"};
  const std::vector<cuda::emulation::Call> words = Recorded(GetParam(), true);
  EXPECT_EQ(Count(words, kernels), 0);
  EXPECT_GT(Count(words, {"Store"}), 0);
  EXPECT_GT(Count(words, {"Stamp"}), 0);
  // Where they are kernels, as many are seen by these names.
  const std::vector<cuda::emulation::Call> marks = Recorded(GetParam(), false);
  EXPECT_EQ(Count(marks, kernels), Count(words, {"Store", "Stamp"}));
  EXPECT_EQ(marks.size(), words.size());
}

INSTANTIATE_TEST_SUITE_P(Strategies, RecordedMarks, testing::Values("no_shard", "full_shard"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace ft
