// The whole runtime on a plan made by hand: real kernels, real collectives, ranks as threads.
#include "runtime/executor/executor.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/backends/cpu/device/cpu_device.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/null/null_communicator.h"
#include "runtime/backends/null/null_device.h"
#include "runtime/base/testing/temp_folder.h"
#include "runtime/collective/plan_communicators.h"
#include "runtime/collective/testing/test_world.h"
#include "runtime/cost/simulate.h"
#include "runtime/executor/load_weights.h"
#include "runtime/executor/save_weights.h"
#include "runtime/executor/training_loop.h"
#include "runtime/plan/testing/targets.h"
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
  TinyPlanOptions plan = {};
  int ranks = 1;
  std::optional<Mesh> mesh = {};  // absent: the default
  int64_t steps = 20;
  std::string init = {};          // safetensors to start from
  std::string save_weights = {};  // and to end with
};

// Trains with the given ranks; the loss curve of rank 0.
std::vector<std::string> Train(const RunSettings& settings) {
  const TempFolder folder;
  const std::string data = folder.Write("text.txt", Text()), metrics = folder.Path("m.jsonl");
  const proto::Plan plan = TinyPlan(settings.plan);
  const BoundPlan bound =
      *BindPlan(plan, settings.mesh.value_or(*MeshFor(plan, settings.ranks)), DeviceClass::kCpu);
  KernelRegistry kernels;
  RegisterCpuKernels(kernels);
  ft::testing::TestWorld world(settings.ranks);
  world.RunThreads([&](const Rendezvous& rendezvous) {
    auto communicators = CreatePlanCommunicators(rendezvous, plan, bound.mesh, {});
    ASSERT_TRUE(communicators.ok()) << communicators.status();
    EXPECT_EQ(communicators->staging_bytes(), StagingBytes(plan, bound.mesh, CollectiveBackend::kShm));
    CpuDevice device(kernels, {});
    const int rank = rendezvous.rank();
    auto executor = Executor::Create(plan, bound, device, communicators->table(), rank);
    ASSERT_TRUE(executor.ok()) << executor.status();
    EXPECT_EQ((*executor)->arena_bytes(), bound.arena_bytes());
    EXPECT_EQ((*executor)->host_arena_bytes(), bound.host_arena_bytes());
    auto dataset = OpenDataset(data, 256, 16);
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    const BatchSampler sampler(**dataset, 2, rank, settings.ranks, 42, true);
    auto loop = TrainingLoop::Create(
        plan, **executor,
        {.steps = settings.steps, .lr = {.peak = 0.05}, .rank = rank, .world_size = settings.ranks});
    ASSERT_TRUE(loop.ok()) << loop.status();
    if (settings.init.empty()) {
      ASSERT_TRUE(loop->Initialize().ok());
    } else {
      const auto weights = OpenInitialWeights(plan, settings.init);
      ASSERT_TRUE(weights.ok()) << weights.status();
      ASSERT_TRUE(LoadWeights(plan, **executor, *weights).ok());
    }
    std::unique_ptr<MetricsFile> file;
    if (rank == 0) file = *MetricsFile::Open(metrics);
    const absl::Status status = loop->Run(sampler, {.metrics = file.get()});
    ASSERT_TRUE(status.ok()) << status;
    if (settings.save_weights.empty()) return;
    const absl::Status saved = SaveWeights(plan, **executor, communicators->world(), settings.save_weights);
    ASSERT_TRUE(saved.ok()) << saved;
  });
  return ReadCurve(metrics);
}

double LossOf(const std::string& line) { return std::stod(line.substr(line.find("\"loss\":") + 7)); }

// Every strategy, with optimizer state here and there.
std::vector<TinyPlanOptions> AllKinds() {
  std::vector<TinyPlanOptions> kinds;
  for (const bool offload : {false, true}) {
    kinds.push_back({.shard = false, .offload = offload});
    kinds.push_back({.shard = true, .offload = offload});
    kinds.push_back({.shard = true, .whole_parameters = true, .offload = offload});
    kinds.push_back({.shard = true, .two_axes = true, .offload = offload});
    kinds.push_back({.shard = true, .whole_parameters = true, .two_axes = true, .offload = offload});
  }
  for (size_t i = 0, n = kinds.size(); i < n; ++i) {
    if (!kinds[i].offload) continue;
    kinds.push_back(kinds[i]);
    kinds.back().host_step = true;
  }
  return kinds;
}

TEST(TinyPlanTest, IsValid) {
  for (const TinyPlanOptions& options : AllKinds())
    EXPECT_EQ(VerifyPlan(TinyPlan(options)), absl::OkStatus());
}

TEST(ExecutorTest, LearnsAndGivesTheSameBitsForAllStrategiesHereAndOffloaded) {
  std::map<int, std::vector<std::string>> first;
  for (int ranks : {1, 2, 3, 4}) {
    const std::vector<std::string> sharded = Train({.ranks = ranks});
    ASSERT_EQ(sharded.size(), 20u);
    EXPECT_EQ(sharded, Train({.ranks = ranks})) << "a second run";
    for (const TinyPlanOptions& kind : AllKinds()) {
      EXPECT_EQ(sharded, Train({.plan = kind, .ranks = ranks})) << TinyPlan(kind).strategy()
                                                                << (kind.host_step ? ", updated on the host, "
                                                                    : kind.offload ? ", offloaded, "
                                                                                   : ", ")
                                                                << ranks << " ranks";
    }
    EXPECT_LT(LossOf(sharded.back()), 0.7 * LossOf(sharded.front()));
    first[ranks] = sharded;
  }
  EXPECT_NE(first[1], first[2]);  // another batch, another curve: the comparison is not of constants
}

// Shard groups of a power of two walk the same tree as all ranks at once.
TEST(ExecutorTest, TwoAxesGiveTheBitsOfOne) {
  const std::vector<std::string> one_axis = Train({.ranks = 4});
  for (const bool whole : {false, true}) {
    for (const Mesh& mesh : {Mesh{2, 2}, Mesh{1, 4}, Mesh{4, 1}}) {
      const TinyPlanOptions kind = {.whole_parameters = whole, .two_axes = true};
      EXPECT_EQ(one_axis, Train({.plan = kind, .ranks = 4, .mesh = mesh})) << MeshText(mesh);
    }
  }
  const TinyPlanOptions hybrid = {.two_axes = true, .offload = true};
  const std::vector<std::string> six = Train({.plan = hybrid, .ranks = 6, .mesh = Mesh{3, 2}});
  ASSERT_EQ(six.size(), 20u);
  // (0 1) (2 3) (4 5) reduced over replicas as ((01)(23))(45): the tree of six.
  EXPECT_EQ(six, Train({.ranks = 6}));
}

TEST(ExecutorTest, WeightsGoThroughAFileUnchanged) {
  const TempFolder folder;
  const std::string two = folder.Path("two.safetensors"), again = folder.Path("again.safetensors"),
                    one = folder.Path("one.safetensors");
  Train({.ranks = 2, .save_weights = two});
  Train({.ranks = 3, .steps = 0, .init = two, .save_weights = again});
  Train({.plan = {.shard = false}, .ranks = 1, .steps = 0, .init = two, .save_weights = one});
  EXPECT_GT(TempFolder::Read(two).size(), 2 * 256 * 12 * 4u);
  EXPECT_EQ(TempFolder::Read(two), TempFolder::Read(again));
  EXPECT_EQ(TempFolder::Read(two), TempFolder::Read(one));
  for (const bool whole : {false, true}) {
    const TinyPlanOptions hybrid = {.whole_parameters = whole, .two_axes = true};
    Train({.plan = hybrid, .ranks = 4, .mesh = Mesh{2, 2}, .steps = 0, .init = two, .save_weights = again});
    EXPECT_EQ(TempFolder::Read(two), TempFolder::Read(again));
  }
  // And training goes on from them.
  EXPECT_LT(LossOf(Train({.ranks = 2, .steps = 1, .init = two})[0]),
            0.8 * LossOf(Train({.ranks = 2, .steps = 1})[0]));
}

// Communicators of rank 0, one for each group, of one kind.
template <typename Kind>
PlanCommunicators Made(const proto::Plan& plan, const Mesh& mesh) {
  std::vector<std::unique_ptr<Communicator>> made;
  for (const CommunicatorGroup& group : CommunicatorGroups(plan, mesh, 0))
    made.push_back(std::make_unique<Kind>(0, static_cast<int>(group.ranks.size())));
  return PlanCommunicators(plan, mesh, 0, std::move(made));
}

// Plans that only a device can refuse.
absl::Status CreateError(const proto::Plan& plan) {
  KernelRegistry kernels;
  RegisterCpuKernels(kernels);
  CpuDevice device(kernels, {});
  const PlanCommunicators communicators = Made<NullCommunicator>(plan, {1, 1});
  const BoundPlan bound = *BindPlan(plan, {1, 1}, DeviceClass::kCpu);
  return Executor::Create(plan, bound, device, communicators.table(), 0).status();
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

TEST(ExecutorTest, CommunicatorsThatDoNotFitThePlanAreRefused) {
  KernelRegistry kernels;
  RegisterCpuKernels(kernels);
  CpuDevice device(kernels, {});
  const proto::Plan plan = TinyPlan();
  const BoundPlan bound = *BindPlan(plan, {1, 4}, DeviceClass::kCpu);
  const PlanCommunicators other = Made<NullCommunicator>(plan, {1, 2});
  const absl::Status wrong = Executor::Create(plan, bound, device, other.table(), 0).status();
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInternal);
  EXPECT_NE(wrong.message().find("(all_gather bigram): its axis has 4 ranks, its communicator 2"),
            std::string::npos)
      << wrong;
  const absl::Status none = Executor::Create(plan, bound, device, CommunicatorTable(), 0).status();
  EXPECT_NE(none.message().find("there is no communicator"), std::string::npos) << none;
}

// Fails every reduce_scatter.
class FailingCommunicator final : public Communicator {
 public:
  FailingCommunicator(int rank, int size) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  absl::Status AllGather(absl::Span<const GatherPart> parts, const CollectiveLabel&) override {
    for (const GatherPart& part : parts) std::memcpy(part.dst, part.src, part.bytes);
    return absl::OkStatus();
  }
  absl::Status ReduceScatter(absl::Span<const ReducePart>, const CollectiveLabel&) override {
    return absl::UnavailableError("rank 3 was lost");
  }
  absl::Status AllReduce(absl::Span<const ReducePart>, const CollectiveLabel&) override {
    return absl::OkStatus();
  }
  absl::Status AllToAll(const AllToAllParts&, const CollectiveLabel&) override { return absl::OkStatus(); }
  absl::Status Broadcast(void*, size_t, int, const CollectiveLabel&) override { return absl::OkStatus(); }
  absl::Status Barrier(const CollectiveLabel&) override { return absl::OkStatus(); }
  void Supervise(std::function<InFlight()>, std::function<void(const absl::Status&)> on_failure) override {
    find_failure = std::move(on_failure);
  }
  void Abort(absl::Status reason) override { aborted = std::move(reason); }
  size_t staging_bytes() const override { return 0; }
  absl::Status aborted;
  std::function<void(const absl::Status&)> find_failure;
};

class FailingExecutorTest : public ::testing::Test {
 protected:
  FailingExecutorTest() { RegisterCpuKernels(kernels_); }
  FailingCommunicator& Of(proto::Stream stream) {
    return static_cast<FailingCommunicator&>(*communicators_.table().at(stream, proto::AXIS_SHARD));
  }

  KernelRegistry kernels_;
  CpuDevice device_{kernels_, {}};
  const proto::Plan plan_ = TinyPlan();
  const BoundPlan bound_ = *BindPlan(plan_, {1, 1}, DeviceClass::kCpu);
  const PlanCommunicators communicators_ = Made<FailingCommunicator>(plan_, {1, 1});
};

TEST_F(FailingExecutorTest, FailedCollectiveStopsTheStepAndIsPlaced) {
  absl::Status told;
  const auto tell = [&told](const absl::Status& reason) { told = reason; };
  auto executor = Executor::Create(plan_, bound_, device_, communicators_.table(), 0, {.on_failure = tell});
  ASSERT_TRUE(executor.ok()) << executor.status();
  const absl::Status status = (*executor)->Run(1);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(told, status);
  EXPECT_EQ(std::string(status.message()),
            "train_step, instruction 7 (reduce_scatter bigram): rank 3 was lost");
  EXPECT_FALSE(Of(proto::GATHER).aborted.ok());
  EXPECT_FALSE(Of(proto::REDUCE).aborted.ok());
  EXPECT_EQ((*executor)->Run(1), status);  // nothing runs after a failure
}

// Streams that were stopped run through the rest of the program: where they stood is what was before.
TEST_F(FailingExecutorTest, WhereItStoodIsKnownAfterwards) {
  std::atomic<int> program_at_failure = -2;
  std::unique_ptr<Executor> executor;
  const auto tell = [&](const absl::Status&) { program_at_failure = executor->Position().program; };
  executor = *Executor::Create(plan_, bound_, device_, communicators_.table(), 0, {.on_failure = tell});
  EXPECT_EQ(executor->Position().program, -1);
  EXPECT_EQ(executor->Position().runs, 0u);
  const absl::Status status = executor->Run(1);
  EXPECT_EQ(program_at_failure, 1);
  const ExecutorPosition at = executor->Position();
  EXPECT_EQ(at.failure, status);
  EXPECT_EQ(at.program, 1);
  EXPECT_EQ(at.runs, 1u);
  int standing = 0;
  for (const StreamPosition& stream : at.streams) {
    EXPECT_TRUE(stream.is_followed);
    for (const CommandHistory::Entry& done : stream.commands.recent) EXPECT_LE(done.end_ns, at.taken_ns);
    if (stream.stream != proto::REDUCE) continue;
    ASSERT_TRUE(stream.commands.running.has_value());
    EXPECT_EQ(stream.commands.running->info->title, "reduce_scatter bigram");
    EXPECT_EQ(stream.commands.running->info->instruction, 7);
    EXPECT_LE(stream.commands.running->begin_ns, at.taken_ns);
    ++standing;
  }
  EXPECT_EQ(standing, 1);
  std::map<proto::Stream, std::pair<uint64_t, uint64_t>> counts;
  for (const CollectivePosition& count : at.collectives) {
    EXPECT_EQ(count.axis, proto::AXIS_SHARD);
    counts[count.stream] = {count.entered, count.left};
  }
  EXPECT_EQ(counts[proto::REDUCE], (std::pair<uint64_t, uint64_t>{1, 0}));
  EXPECT_EQ(counts[proto::GATHER].first, counts[proto::GATHER].second);
  EXPECT_GT(counts[proto::GATHER].first, 0u);
}

TEST_F(FailingExecutorTest, AFailureThatACommunicatorFindsEndsTheRunAndIsTold) {
  absl::Status told;
  const auto tell = [&](const absl::Status& reason) {
    told = reason;
    EXPECT_EQ(device_.status(), reason) << "first of all the run is cancelled";
  };
  auto executor = Executor::Create(plan_, bound_, device_, communicators_.table(), 0, {.on_failure = tell});
  ASSERT_TRUE(executor.ok()) << executor.status();
  const absl::Status reason = absl::UnavailableError("timed out in 'all_gather bigram' #2");
  Of(proto::GATHER).find_failure(reason);
  EXPECT_EQ(told, reason);
  EXPECT_EQ(Of(proto::REDUCE).aborted, reason);
  EXPECT_EQ((*executor)->Run(1), reason);
}

TEST_F(FailingExecutorTest, OnADeviceThatFailedCommunicatorsAreGivenUp) {
  const absl::Status reason = absl::InternalError("stream compute: an illegal memory access");
  for (const bool fails : {false, true}) {
    auto executor = Executor::Create(plan_, bound_, device_, communicators_.table(), 0);
    ASSERT_TRUE(executor.ok()) << executor.status();
    if (fails) device_.Cancel(reason);
    executor->reset();
    EXPECT_EQ(Of(proto::GATHER).aborted, fails ? reason : absl::OkStatus());
  }
}

// By whatever strategy, for any number of ranks, on the CPU and on GPUs: the executor's queues take the time
// that was reckoned from the plan.
TEST(NullDeviceTest, AStepTakesWhatTheSimulationSays) {
  double before = 0;
  for (const bool shard : {false, true}) {
    for (const int offload : {0, 1, 2}) {  // nothing, state, state and step
      for (const int ranks : {1, 8, 24, 512}) {
        proto::Plan plan = TinyPlan({.shard = shard, .offload = offload > 0, .host_step = offload == 2});
        uint64_t flops = 1'000'000'000;
        for (proto::Instruction& instruction : *plan.mutable_programs(1)->mutable_instructions())
          instruction.set_flops(flops += 1'234'567);
        const Mesh mesh = *MeshFor(plan, ranks);
        const BoundPlan bound = *BindPlan(plan, mesh, DeviceClass::kCpu);
        const Target target = RoundTarget();
        NullDevice device(CostClock(plan, bound, target));
        const PlanCommunicators communicators = Made<NullCommunicator>(plan, mesh);
        auto executor = Executor::Create(plan, bound, device, communicators.table(), 0);
        ASSERT_TRUE(executor.ok()) << executor.status();
        ASSERT_TRUE((*executor)->Run(1).ok());
        const double seconds = SimulateProgram(plan, bound, 1, target).seconds;
        EXPECT_EQ(device.now(), seconds) << ranks << " ranks";
        EXPECT_NE(seconds, before);
        before = seconds;
        ASSERT_TRUE((*executor)->Run(1).ok());
        EXPECT_NEAR(device.now(), 2 * seconds, 1e-12);
      }
    }
  }
}

void AddPoint(double at, double value, google::protobuf::RepeatedPtrField<Target::Point>* points) {
  Target::Point* point = points->Add();
  point->set_at(at);
  point->set_value(value);
}

// Targets that know one more thing each: what runs side by side, launches, jitter, measured transfers.
std::vector<Target> TargetsByTerm() {
  std::vector<Target> targets = {RoundTarget()};
  for (const proto::Opcode opcode :
       {proto::ALL_GATHER, proto::REDUCE_SCATTER, proto::ALL_REDUCE, proto::COPY}) {
    Target next = targets.back();
    Target::Overlap* overlap = next.add_overlaps();
    overlap->set_opcode(opcode);
    overlap->set_kernels(0.3);
    overlap->set_transfer(0.2);
    targets.push_back(next);
  }
  Target next = targets.back();
  next.mutable_stack()->set_launch_s(1e-3);
  next.mutable_stack()->set_launches(2);
  targets.push_back(next);
  AddPoint(1, 0, next.mutable_jitter());
  AddPoint(512, 0.04, next.mutable_jitter());
  targets.push_back(next);
  AddPoint(1, 0.5, next.mutable_node_ramp());
  AddPoint(1e6, 1, next.mutable_node_ramp());
  AddPoint(1, 0.25, next.mutable_network_ramp());
  targets.push_back(next);
  Target::Collective* measured = next.add_collectives();
  measured->set_opcode(proto::ALL_GATHER);
  measured->set_nodes(1);
  measured->set_ranks_on_node(8);
  AddPoint(1e3, 1e7, measured->mutable_bytes_per_s());
  targets.push_back(next);
  next.mutable_products()->set_multiprocessors(7);
  next.mutable_products()->set_tile_rows(16);
  next.mutable_products()->set_tile_columns(16);
  next.mutable_overlaps(0)->set_multiprocessors(2);
  next.set_sustained(0.8);
  AddPoint(1e3, 1e8, next.mutable_memory());
  targets.push_back(next);
  return targets;
}

TEST(NullDeviceTest, EveryTermIsTheSameForTheExecutorsQueues) {
  for (const bool shard : {false, true}) {
    for (const int offload : {0, 1, 2}) {
      for (const int ranks : {1, 8, 24, 512}) {
        proto::Plan plan = TinyPlan({.shard = shard, .offload = offload > 0, .host_step = offload == 2});
        uint64_t flops = 1'000'000'000;
        for (proto::Instruction& instruction : *plan.mutable_programs(1)->mutable_instructions())
          instruction.set_flops(flops += 1'234'567);
        const BoundPlan bound = *BindPlan(plan, *MeshFor(plan, ranks), DeviceClass::kCpu);
        const PlanCommunicators communicators = Made<NullCommunicator>(plan, bound.mesh);
        double least = 0;
        for (const Target& target : TargetsByTerm()) {
          NullDevice device(CostClock(plan, bound, target));
          auto executor = Executor::Create(plan, bound, device, communicators.table(), 0);
          ASSERT_TRUE(executor.ok()) << executor.status();
          for (int run = 0; run < 2; ++run) ASSERT_TRUE((*executor)->Run(1).ok());
          const double seconds = SimulateProgram(plan, bound, 1, target).seconds;
          EXPECT_NEAR(device.now(), 2 * seconds, 1e-9);
          EXPECT_GE(seconds, least * 0.999);
          least = seconds;
        }
      }
    }
  }
}

class Titles final : public StreamObserver {
 public:
  void OnCommand(const CommandInfo& info, int64_t, int64_t) override { titles.push_back(info.title); }
  std::vector<std::string> titles;
};

TEST(ExecutorTest, CopiesHaveStreamsAndTitlesOfTheirOwn) {
  const proto::Plan plan = TinyPlan({.offload = true});
  const BoundPlan bound = *BindPlan(plan, {1, 1}, DeviceClass::kCpu);
  EXPECT_EQ(bound.host_arena_bytes(), 2 * 6144 * sizeof(float));
  KernelRegistry kernels;
  RegisterCpuKernels(kernels);
  CpuDevice device(kernels, {});
  const PlanCommunicators communicators = Made<NullCommunicator>(plan, {1, 1});
  auto executor = Executor::Create(plan, bound, device, communicators.table(), 0);
  ASSERT_TRUE(executor.ok()) << executor.status();
  Titles in, out;
  std::array<StreamObserver*, kNumStreams> observers = {};
  observers[proto::H2D] = &in;
  observers[proto::D2H] = &out;
  (*executor)->Observe(observers);
  ASSERT_TRUE((*executor)->Run(1).ok());
  (*executor)->Observe({});
  ASSERT_EQ(in.titles.size(), 2u) << "a wait for compute and the copy";
  EXPECT_EQ(in.titles[1], "copy_in exp_avg_here +1");
  ASSERT_EQ(out.titles.size(), 2u);
  EXPECT_EQ(out.titles[1], "copy_out exp_avg_here +1");
}

TEST(ExecutorTest, TheHostsStreamUpdates) {
  const proto::Plan plan = TinyPlan({.offload = true, .host_step = true});
  const BoundPlan bound = *BindPlan(plan, {1, 1}, DeviceClass::kCpu);
  KernelRegistry kernels;
  RegisterCpuKernels(kernels);
  CpuDevice device(kernels, {});
  const PlanCommunicators communicators = Made<NullCommunicator>(plan, {1, 1});
  auto executor = Executor::Create(plan, bound, device, communicators.table(), 0);
  ASSERT_TRUE(executor.ok()) << executor.status();
  EXPECT_TRUE((*executor)->UsesStream(proto::HOST_COMPUTE));
  Titles host, compute;
  std::array<StreamObserver*, kNumStreams> observers = {};
  observers[proto::HOST_COMPUTE] = &host;
  observers[proto::COMPUTE] = &compute;
  (*executor)->Observe(observers);
  ASSERT_TRUE((*executor)->Run(1).ok());
  (*executor)->Observe({});
  ASSERT_EQ(host.titles.size(), 2u) << "a wait for compute and the update";
  EXPECT_EQ(host.titles[1], "update");
  EXPECT_EQ(std::count(compute.titles.begin(), compute.titles.end(), "update"), 0);
}

}  // namespace
}  // namespace ft
