// The contract "static": from the third step on, nothing is allocated by any thread, data, metrics, progress
// and the watch over the ranks included.
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/backends/cpu/device/cpu_device.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/testing/temp_folder.h"
#include "runtime/collective/liveness/peer_monitor.h"
#include "runtime/collective/plan_communicators.h"
#include "runtime/collective/testing/test_world.h"
#include "runtime/executor/testing/probe_plan.h"
#include "runtime/executor/trace_session.h"
#include "runtime/executor/training_loop.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/testing/tiny_plan.h"

namespace {

std::atomic<bool> counting = false;
std::atomic<int> allocations = 0;

// Where the first counted allocation came from, for the message.
void* first_place[32];
int first_depth = 0;

void Count() {
  if (!counting.load(std::memory_order_relaxed)) return;
  if (allocations.fetch_add(1, std::memory_order_relaxed) == 0) first_depth = backtrace(first_place, 32);
}

}  // namespace

#include "test/doubles/allocations/interposed_malloc.h"

namespace ft {
namespace {

// Begins to count after the second step and stops after the last.
class CountingProgressClock {
 public:
  static double Now() { return 0.001 * ++calls; }
  static int calls;
};
int CountingProgressClock::calls = 0;

void TrainCounted(const proto::Plan& plan, int ranks, int threads) {
  const TempFolder folder;
  const int64_t batch = static_cast<int64_t>(plan.batch()), seq_len = static_cast<int64_t>(plan.seq_len());
  const std::vector<DataEntry> data = {
      {.path = folder.Write("a.txt", std::string(5000, 'a')), .weight = 0.7},
      {.path = folder.Write("b.txt", std::string(5000, 'b')), .weight = 0.3}};
  const BoundPlan bound = *BindPlan(plan, *MeshFor(plan, ranks), DeviceClass::kCpu);
  KernelRegistry kernels;
  RegisterCpuKernels(kernels);
  RegisterProbe(kernels, [](const ProbeCall& call) {
    if (call.loss != nullptr) *call.loss = *call.grad_norm = 1;
    if (call.loss_sum != nullptr) call.loss_sum[0] = call.loss_sum[1] = 8;
  });
  const int sink = open("/dev/null", O_WRONLY);
  ft::testing::TestWorld world(ranks);
  world.RunThreads([&](const Rendezvous& rendezvous) {
    auto communicators = CreatePlanCommunicators(rendezvous, plan, bound.mesh, {});
    ASSERT_TRUE(communicators.ok()) << communicators.status();
    CpuDevice device(kernels, {.num_threads = threads});
    const int rank = rendezvous.rank();
    auto executor = Executor::Create(plan, bound, device, communicators->table(), rank);
    ASSERT_TRUE(executor.ok()) << executor.status();
    auto dataset = OpenDataset(data, static_cast<int64_t>(plan.vocab_size()), seq_len);
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    const BatchSampler sampler(**dataset, batch, rank, ranks, 42, true);
    auto loop = TrainingLoop::Create(plan, **executor,
                                     {.steps = 2, .rank = rank, .world_size = ranks, .find_nan = true});
    auto rest = TrainingLoop::Create(
        plan, **executor,
        {.steps = 18, .rank = rank, .world_size = ranks, .find_nan = true, .eval_every = 3});
    const EvaluationBatches batches(**dataset, batch, rank, ranks, 4);
    std::optional<Evaluator> evaluator;
    if ((*executor)->FindProgram("eval_step").ok()) {
      evaluator = *Evaluator::Create(plan, **executor, batches, 42, rank);
    }
    Evaluator* const evaluation = evaluator.has_value() ? &*evaluator : nullptr;
    ASSERT_TRUE(loop.ok() && rest.ok());
    auto metrics = MetricsFile::Open(folder.Path("m" + std::to_string(rank)));
    Progress progress(sink, ProgressMode::kOn, 20, CountingProgressClock::Now);
    TraceSession trace(plan, **executor, loop->programs().num_commands(**executor), rank, {.count = 5});
    ASSERT_TRUE(loop->Initialize().ok());
    const auto monitor = *PeerMonitor::Start(rendezvous);
    int64_t steps_done = 0;
    const TrainingOutputs outputs{
        .metrics = metrics->get(),
        .progress = &progress,
        .observer = &trace,
        .compute_time = [&](int64_t, double compute_ms) -> std::optional<ComputeSpread> {
          monitor->step_times().Report(++steps_done, compute_ms);
          const auto known = monitor->step_times().Newest();
          if (!known.has_value()) return std::nullopt;
          return ComputeSpread{.step = known->step, .max_ms = known->max_ms};
        },
        .boundary = [&](int64_t, std::optional<double>) -> absl::StatusOr<bool> {
          FT_ASSIGN_OR_RETURN(const Order order, monitor->wishes().AtBoundary(steps_done));
          return order == Order::kSaveAndEnd;
        }};
    ASSERT_TRUE(loop->Run(sampler, outputs, evaluation).ok());
    Communicator& barrier = communicators->world();
    ASSERT_TRUE(barrier.Barrier({}).ok());
    if (rank == 0) allocations = 0, counting = true;
    ASSERT_TRUE(barrier.Barrier({}).ok());
    const absl::Status status = rest->Run(sampler, outputs, evaluation);
    const absl::Status done = barrier.Barrier({});
    if (rank == 0) counting = false;
    const absl::Status last = barrier.Barrier({});
    ASSERT_TRUE(status.ok() && done.ok() && last.ok()) << status;
    EXPECT_TRUE(monitor->Goodbye().ok());
  });
  close(sink);
  if (allocations != 0) backtrace_symbols_fd(first_place, first_depth, STDERR_FILENO);
  EXPECT_EQ(allocations, 0) << plan.model() << ", " << plan.strategy() << ", " << ranks << " ranks";
}

TEST(AllocationTest, TheCounterCounts) {
  void* place;
  backtrace(&place, 1);  // its first call allocates
  allocations = 0;
  counting = true;
  void* volatile p = std::malloc(100);
  std::unique_ptr<int[]> q(new int[50]);
  counting = false;
  std::free(p);
  EXPECT_GE(allocations, 2);
}

TEST(AllocationTest, NoneWhileTraining) {
  for (int ranks : {1, 2, 3}) {
    TrainCounted(TinyPlan({.shard = true}), ranks, 1);
    TrainCounted(TinyPlan({.shard = false}), ranks, 1);
    TrainCounted(TinyPlan({.whole_parameters = true, .offload = true}), ranks, 1);
    TrainCounted(TinyPlan({.offload = true, .host_step = true}), ranks, 1);
  }
  TrainCounted(TinyPlan(), 1, 2);
  // Micro-steps, loss scaling and evaluation.
  TrainCounted(ProbePlan(3, true), 1, 1);
}

std::vector<std::string> given_plans;

TEST(AllocationTest, NoneWhileTrainingTheGivenPlans) {
  for (const std::string& path : given_plans) {
    const auto file = ReadPlan(path);
    ASSERT_TRUE(file.ok()) << file.status();
    for (int ranks : {1, 2, 3, 4}) TrainCounted(file->plan, ranks, 1);
    TrainCounted(file->plan, 1, 2);
  }
}

}  // namespace
}  // namespace ft

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  ft::given_plans.assign(argv + 1, argv + argc);
  return RUN_ALL_TESTS();
}
