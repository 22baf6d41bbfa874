#include "runtime/cost/simulate.h"

#include "gtest/gtest.h"
#include "runtime/cost/kernels.h"
#include "runtime/plan/testing/plan_parts.h"
#include "runtime/plan/testing/targets.h"
#include "runtime/plan/testing/tiny_plan.h"
#include "runtime/plan/verify_plan.h"

namespace ft {
namespace {

using namespace plan_parts;

// One FLOP a second, two in 16 bits, a byte a microsecond; transfers take 1 s, copies 2 s, and a tiny bit.
Target SlowTarget() {
  Target target = RoundTarget();
  target.mutable_f32()->set_reached(1);
  target.mutable_bf16()->set_reached(2);
  target.mutable_f16()->set_reached(4);
  target.set_memory_bytes_per_s(1e6);
  target.set_kernel_latency_s(0);
  SetLink(1, 0, 1e12, target.mutable_node());
  SetLink(2, 0, 1e12, target.mutable_copies());
  return target;
}
const Target kTarget = SlowTarget();
constexpr double kTiny = 1e-6;

class SimulateTest : public testing::Test {
 protected:
  SimulateTest() {
    proto::Unit* unit = plan_.add_units();
    unit->set_name("u");
    unit->set_elements(2048);
    plan_.set_block_elements(1024);
    plan_.set_shards_parameters(true);
    for (const auto kind : {proto::SizeExpr::UNIT_SLICE, proto::SizeExpr::UNIT_FULL}) {
      proto::Buffer* buffer = plan_.add_buffers();
      buffer->mutable_size()->set_kind(kind);
      buffer->mutable_size()->set_value(4);
      buffer->set_persistent(true);
    }
    program_ = plan_.add_programs();
    program_->set_name("train_step");
  }

  // Seconds on kTarget.
  void Compute(uint64_t seconds) { Kernel(program_, "work", {}, {})->set_flops(seconds); }
  void Gather(std::initializer_list<uint32_t> after) {
    proto::Instruction* gather = Add(program_, proto::ALL_GATHER, proto::GATHER, after);
    gather->set_axis(proto::AXIS_SHARD);
    *gather->add_in() = Whole(0);
    *gather->add_out() = Whole(1);
  }
  void Wait(uint32_t start) { Add(program_, proto::WAIT, proto::COMPUTE, {start}); }

  BoundPlan Bound(int shards) {
    BoundPlan bound;
    bound.mesh.shard = shards;
    return bound;
  }
  SimulatedProgram Simulate(int shards = 2) { return SimulateProgram(plan_, Bound(shards), 0, kTarget); }

  proto::Plan plan_;
  proto::Program* program_;
};

TEST_F(SimulateTest, ATransferBesideComputationIsHidden) {
  Gather({});
  Compute(3);
  Wait(0);
  Compute(2);
  const SimulatedProgram run = Simulate();
  EXPECT_NEAR(run.seconds, 5, kTiny);
  EXPECT_NEAR(run.compute_seconds, 5, kTiny);
  EXPECT_NEAR(run.exposed_seconds, 0, kTiny);
  EXPECT_NEAR(run.busy_seconds[proto::GATHER], 1, kTiny);
  EXPECT_EQ(run.instructions[0].waited_at, 2);
  EXPECT_NEAR(run.instructions[3].begin, 3, kTiny);
}

TEST_F(SimulateTest, WhatIsNotDoneKeepsComputationWaiting) {
  Compute(3);
  Gather({0});
  Wait(1);
  Compute(2);
  const SimulatedProgram run = Simulate();
  EXPECT_NEAR(run.seconds, 6, kTiny);
  EXPECT_NEAR(run.exposed_seconds, 1, kTiny);
  EXPECT_NEAR(run.instructions[1].exposed, 1, kTiny);
  EXPECT_NEAR(run.instructions[1].begin, 3, kTiny);
  EXPECT_NEAR(run.instructions[2].ready, 4, kTiny);
  EXPECT_NEAR(run.seconds, run.compute_seconds + run.exposed_seconds, kTiny);
}

TEST_F(SimulateTest, TransfersOfAStreamFollowEachOtherAndOthersRunBesideThem) {
  Gather({});
  Gather({});
  *Add(program_, proto::COPY, proto::H2D, {})->add_in() = Whole(0);
  Wait(0);
  Wait(1);
  Wait(2);
  const SimulatedProgram run = Simulate();
  EXPECT_NEAR(run.instructions[1].begin, 1, kTiny);
  EXPECT_NEAR(run.instructions[2].begin, 0, kTiny);
  EXPECT_NEAR(run.seconds, 2, kTiny);
  EXPECT_NEAR(run.instructions[0].exposed, 1, kTiny);
  EXPECT_NEAR(run.instructions[1].exposed, 1, kTiny);
  EXPECT_NEAR(run.instructions[2].exposed, 0, kTiny);
}

TEST_F(SimulateTest, OneRankCopiesWhatItGathers) {
  Gather({});
  Wait(0);
  EXPECT_NEAR(Simulate(/*shards=*/1).seconds, 2, kTiny);
}

TEST_F(SimulateTest, AKernelOverSlicesTakesItsShare) {
  proto::Instruction* kernel = Kernel(program_, "adamw", {Whole(0)}, {});
  kernel->set_flops(8);
  EXPECT_NEAR(Simulate(1).seconds, 8, kTiny);
  EXPECT_NEAR(Simulate(2).seconds, 4, kTiny);
  kernel->mutable_in(0)->set_dtype(proto::BF16);
  EXPECT_NEAR(Simulate(2).seconds, 2, kTiny);
}

TEST_F(SimulateTest, PhasesHaveTheirPartOfTheTime) {
  for (const char* phase : {"forward", "backward", "forward"}) {
    proto::Instruction* kernel = Kernel(program_, "work", {}, {});
    kernel->set_flops(3);
    kernel->set_phase(phase);
  }
  Gather({2});
  Wait(3);
  plan_.mutable_programs(0)->set_name("train_micro");
  plan_.set_micro_steps(3);
  const SimulatedProgram run = SimulateStep(plan_, Bound(2), kTarget);
  ASSERT_EQ(run.phase_seconds.size(), 2u);
  EXPECT_NEAR(run.phase_seconds.at("forward"), 2 * 6, kTiny);
  EXPECT_NEAR(run.phase_seconds.at("backward"), 2 * 3, kTiny);
}

TEST_F(SimulateTest, MicroStepsCountAsOftenAsTheyRun) {
  Compute(5);
  program_ = plan_.add_programs();
  program_->set_name("train_micro");
  Compute(2);
  plan_.set_micro_steps(4);
  EXPECT_NEAR(SimulateStep(plan_, Bound(1), kTarget).seconds, 5 + 3 * 2, kTiny);
}

TEST_F(SimulateTest, TheHostComputesBesideAtTheRateOfItsMemory) {
  Compute(1);
  proto::Instruction* update = Kernel(program_, "update", {}, {});
  update->set_stream(proto::HOST_COMPUTE);
  update->add_after(0);
  update->set_flops(1'000'000);  // it is memory that takes the time
  update->set_bytes(3'000'000);
  Compute(1);
  Wait(1);
  Target target = kTarget;
  target.set_host_memory_bytes_per_s(1.5e6);
  const SimulatedProgram run = SimulateProgram(plan_, Bound(1), 0, target);
  EXPECT_NEAR(run.seconds, 3, kTiny);
  EXPECT_NEAR(run.busy_seconds[proto::HOST_COMPUTE], 2, kTiny);
  EXPECT_NEAR(run.compute_seconds, 2, kTiny);
  EXPECT_NEAR(run.exposed_seconds, 1, kTiny);
  // Where it is not known: the memory of a CPU, the link of a GPU.
  EXPECT_NEAR(HostKernelSeconds(kTarget, 3'000'000), 3, kTiny);
  target.set_host_memory_bytes_per_s(0);
  target.set_cuda(true);
  SetLink(2, 0, 1e5, target.mutable_copies());
  EXPECT_NEAR(HostKernelSeconds(target, 3'000'000), 30, kTiny);
}

TEST_F(SimulateTest, BesideATransferKernelsAndTheTransferTakeLonger) {
  Target target = kTarget;
  SetLink(0, 0, 4096, target.mutable_node());  // the gather moves half of 8192 bytes: 1 s
  Target::Overlap* overlap = target.add_overlaps();
  overlap->set_opcode(proto::ALL_GATHER);
  overlap->set_kernels(0.5);
  overlap->set_transfer(1);
  Gather({});
  Compute(3);
  Wait(0);
  // Both side by side: the gather takes 2 s; in them the kernel does 2/1.5 of its 3, and the rest alone.
  const SimulatedProgram run = SimulateProgram(plan_, Bound(2), 0, target);
  EXPECT_NEAR(run.instructions[0].end, 2, kTiny);
  EXPECT_NEAR(run.seconds, 2 + 3 - 2 / 1.5, kTiny);
  EXPECT_NEAR(run.slowed_seconds, run.seconds - 3, kTiny);
  EXPECT_NEAR(run.exposed_seconds, 0, kTiny);
}

TEST_F(SimulateTest, TransfersOfALinkShareItsBytesNotTheirLatencies) {
  Target target = kTarget;
  SetLink(1, 0, 4096, target.mutable_node());  // 1 s, and 1 s for the bytes
  Gather({});
  Gather({});
  plan_.mutable_programs(0)->mutable_instructions(1)->set_stream(proto::REDUCE);
  const SimulatedProgram both = SimulateProgram(plan_, Bound(2), 0, target);
  EXPECT_NEAR(both.seconds, 1 + 2, kTiny);
  // Half a second of computation ahead of the second one: 1 .. 1.5 alone, together until the first is done at
  // 2.5, and the second, of which half is left then, at 3.
  plan_.mutable_programs(0)->mutable_instructions()->Clear();
  Kernel(program_, "work", {At(0, proto::BF16, {1})}, {})->set_flops(1);
  Gather({});
  Gather({0});
  plan_.mutable_programs(0)->mutable_instructions(2)->set_stream(proto::REDUCE);
  const SimulatedProgram apart = SimulateProgram(plan_, Bound(2), 0, target);
  EXPECT_NEAR(apart.instructions[1].end, 2.5, kTiny);
  EXPECT_NEAR(apart.instructions[2].end, 3, kTiny);
}

TEST_F(SimulateTest, NothingRunsBeforeTheHostHasLaunchedIt) {
  Target target = kTarget;
  target.mutable_stack()->set_launch_s(2);
  target.mutable_stack()->set_launches(1.5);
  Compute(1);
  Compute(5);
  Compute(1);
  // Launched after 3, 6 and 9 s; the second one runs from 6 to 11.
  const SimulatedProgram run = SimulateProgram(plan_, Bound(1), 0, target);
  EXPECT_NEAR(run.instructions[0].begin, 3, kTiny);
  EXPECT_NEAR(run.instructions[1].begin, 6, kTiny);
  EXPECT_NEAR(run.instructions[2].begin, 11, kTiny);
  EXPECT_NEAR(run.launch_seconds, 3 + 2, kTiny);
  // Of instructions that wait for nothing else: when those before them were done.
  EXPECT_NEAR(run.instructions[0].ready, 0, kTiny);
  EXPECT_NEAR(run.instructions[1].ready, 4, kTiny);
  EXPECT_NEAR(run.instructions[2].ready, 11, kTiny);
  EXPECT_NEAR(run.seconds, run.compute_seconds + run.exposed_seconds + run.launch_seconds, kTiny);
}

TEST_F(SimulateTest, JitterMakesAllOfItLonger) {
  Target target = kTarget;
  Target::Point* point = target.add_jitter();
  point->set_at(2);
  point->set_value(0.25);
  Compute(3);
  Gather({0});
  Wait(1);
  EXPECT_NEAR(SimulateProgram(plan_, Bound(2), 0, target).seconds, 1.25 * 4, kTiny);
}

TEST_F(SimulateTest, OffloadCostsCopies) {
  for (const bool offload : {false, true}) {
    const proto::Plan plan = TinyPlan({.offload = offload});
    ASSERT_EQ(VerifyPlan(plan), absl::OkStatus());
    const BoundPlan bound = *BindPlan(plan, {.replica = 1, .shard = 2}, DeviceClass::kCpu);
    const SimulatedProgram step = SimulateStep(plan, bound, RoundTarget());
    EXPECT_GT(step.exposed_seconds, 0);
    EXPECT_EQ(step.busy_seconds[proto::H2D] > 0, offload);
    EXPECT_EQ(step.busy_seconds[proto::D2H] > 0, offload);
    EXPECT_NEAR(step.seconds, step.compute_seconds + step.exposed_seconds, 1e-12);
  }
}

}  // namespace
}  // namespace ft
