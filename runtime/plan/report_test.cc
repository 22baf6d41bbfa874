#include "runtime/plan/report.h"

#include <numeric>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/plan/testing/targets.h"

namespace ft {
namespace {

constexpr uint64_t kBlock = 1024;

uint32_t AddBuffer(proto::Plan& plan, const char* name, proto::MemoryClass memory_class,
                   proto::SizeExpr::Kind kind, uint64_t value) {
  proto::Buffer& buffer = *plan.add_buffers();
  buffer.set_name(name);
  buffer.set_class_(memory_class);
  buffer.mutable_size()->set_kind(kind);
  buffer.mutable_size()->set_value(value);
  buffer.set_persistent(true);
  return plan.buffers_size();  // index + 1
}

void SetWhole(proto::Operand& operand, uint32_t buffer_plus_one) {
  operand.set_buffer_plus_one(buffer_plus_one);
  operand.set_whole(true);
}

proto::Instruction& AddInstruction(proto::Program& program, proto::Opcode opcode, proto::Stream stream,
                                   proto::Axis axis) {
  proto::Instruction& instruction = *program.add_instructions();
  instruction.set_opcode(opcode);
  instruction.set_stream(stream);
  instruction.set_axis(axis);
  return instruction;
}

// One unit of three blocks, sharded: gathered, scattered, updated.
proto::Plan ShardedPlan() {
  proto::Plan plan;
  plan.set_block_elements(kBlock);
  plan.set_shards_parameters(true);
  plan.set_shards_gradients(true);
  plan.set_shards_optimizer(true);
  plan.set_two_axes(true);
  proto::Unit& unit = *plan.add_units();
  unit.set_name("h");
  unit.set_elements(3 * kBlock);
  proto::Parameter& parameter = *plan.add_parameters();
  parameter.add_shape(50);
  parameter.add_shape(60);
  const auto slice = proto::SizeExpr::UNIT_SLICE;
  const auto add_state = [&](const char* role, const char* name, proto::MemoryClass memory_class) {
    proto::Plan::UnitState& state = *plan.add_unit_states();
    state.set_role(role);
    const uint32_t plus_one = AddBuffer(plan, name, memory_class, slice, 4);
    state.set_buffer(plus_one - 1);
    return plus_one;
  };
  const uint32_t p = add_state("parameters", "p", proto::PARAMETERS);
  const uint32_t g = add_state("gradients", "g", proto::GRADIENTS);
  add_state("exp_avg", "m", proto::OPTIMIZER_STATE);
  add_state("exp_avg_sq", "v", proto::OPTIMIZER_STATE);
  const uint32_t loss = AddBuffer(plan, "loss", proto::IO, proto::SizeExpr::CONSTANT, 4);
  const uint32_t full = AddBuffer(plan, "full", proto::GATHERED, proto::SizeExpr::UNIT_FULL, 4);
  const uint32_t early = AddBuffer(plan, "early", proto::ACTIVATIONS, proto::SizeExpr::CONSTANT, 100);
  for (uint32_t buffer : {full, early}) plan.mutable_buffers(buffer - 1)->set_persistent(false);
  plan.mutable_buffers(full - 1)->set_first(1);
  plan.mutable_buffers(full - 1)->set_last(2);

  proto::Program& program = *plan.add_programs();
  program.set_name("train_step");
  proto::Instruction& forward = AddInstruction(program, proto::KERNEL, proto::COMPUTE, proto::AXIS_NONE);
  forward.set_kernel("fill");
  forward.set_phase("forward");
  forward.set_flops(70);
  forward.set_model_flops(60);
  proto::Instruction& gather = AddInstruction(program, proto::ALL_GATHER, proto::GATHER, proto::AXIS_SHARD);
  gather.set_unit_plus_one(1);
  SetWhole(*gather.add_in(), p);
  SetWhole(*gather.add_out(), full);
  proto::Instruction& scatter =
      AddInstruction(program, proto::REDUCE_SCATTER, proto::REDUCE, proto::AXIS_SHARD);
  scatter.set_unit_plus_one(1);
  SetWhole(*scatter.add_in(), full);
  SetWhole(*scatter.add_out(), g);
  SetWhole(*AddInstruction(program, proto::ALL_REDUCE, proto::REDUCE, proto::AXIS_WORLD).add_in(), loss);
  proto::Instruction& adamw = AddInstruction(program, proto::KERNEL, proto::COMPUTE, proto::AXIS_NONE);
  adamw.set_kernel("adamw");
  adamw.set_phase("optimizer");
  adamw.set_flops(3 * kBlock * 16);
  SetWhole(*adamw.add_in(), g);
  return plan;
}

PlanReport Report(int shard, int replica = 1) {
  const proto::Plan plan = ShardedPlan();
  const auto bound = BindPlan(plan, {.replica = replica, .shard = shard}, DeviceClass::kCpu);
  EXPECT_TRUE(bound.ok()) << bound.status();
  return ReportPlan(plan, *bound);
}

TEST(ReportTest, ClassesAndPaddingMakeUpTheArena) {
  for (int ranks : {1, 2, 3, 4, 512}) {
    const ArenaReport memory = Report(ranks).memory.device;
    EXPECT_EQ(std::accumulate(memory.by_class.begin(), memory.by_class.end(), memory.padding),
              memory.arena_bytes);
    EXPECT_EQ(Report(ranks).memory.host.arena_bytes, 0u);
  }
}

TEST(ReportTest, CountsWhatLivesAtThePeak) {
  const ArenaReport memory = Report(2).memory.device;
  EXPECT_EQ(memory.by_class[proto::PARAMETERS], 2 * kBlock * 4);
  EXPECT_EQ(memory.by_class[proto::OPTIMIZER_STATE], 2 * 2 * kBlock * 4);
  EXPECT_EQ(memory.by_class[proto::GATHERED], 4 * kBlock * 4);
  EXPECT_EQ(memory.by_class[proto::ACTIVATIONS], 0u) << "it is gone when the gathered unit is there";
  EXPECT_EQ(memory.by_class[proto::IO], 256u) << "rounded up to the alignment";
  EXPECT_EQ(memory.peak, "train_step, instruction 1 (all_gather h)");
}

TEST(ReportTest, SlicesAreWholeBlocks) {
  EXPECT_EQ(Report(1).memory.at_rest.total(), 4 * 3 * kBlock * 4);
  EXPECT_EQ(Report(2).memory.at_rest.total(), 4 * 2 * kBlock * 4);
  EXPECT_EQ(Report(3).memory.at_rest.total(), 4 * 1 * kBlock * 4);
  EXPECT_EQ(Report(3).memory.at_rest.optimizer_state, 2 * 1 * kBlock * 4);
  EXPECT_EQ(Report(512).memory.at_rest.total(), 4 * 1 * kBlock * 4);
}

TEST(ReportTest, TrafficIsWhatARankSends) {
  const TrafficReport traffic = Report(2, 2).traffic;
  EXPECT_EQ(traffic.total.all_gather.bytes, 2 * kBlock * 4)
      << "its slice, to the other rank of its shard group";
  EXPECT_EQ(traffic.total.reduce_scatter.bytes, 2 * kBlock * 4);
  EXPECT_EQ(traffic.total.all_reduce.bytes, 2 * 4 * 3 / 4) << "over the world of four";
  ASSERT_EQ(traffic.by_unit.size(), 1u);
  EXPECT_EQ(traffic.by_unit[0].total_bytes() + traffic.other.total_bytes(), traffic.total.total_bytes());
  EXPECT_EQ(traffic.other.all_reduce.count, 1u);
  EXPECT_EQ(traffic.by_unit[0].all_gather.count, 1u);
}

TEST(ReportTest, OneRankSendsNothing) {
  const TrafficReport traffic = Report(1).traffic;
  EXPECT_EQ(traffic.total.total_bytes(), 0u);
  EXPECT_EQ(traffic.total.all_gather.count, 1u);
}

TEST(ReportTest, WorkOnASliceIsAShare) {
  EXPECT_EQ(Report(1).flops.optimizer, 3 * kBlock * 16);
  EXPECT_EQ(Report(3).flops.optimizer, kBlock * 16);
  EXPECT_EQ(Report(3).flops.forward, 70u);
  EXPECT_EQ(Report(3).flops.total(), 70 + kBlock * 16);
}

// The same with a second unit, both gathered in one bucket, in a plan of four micro-steps that computes a
// part again and keeps a moment in host memory.
proto::Plan RichPlan() {
  proto::Plan plan = ShardedPlan();
  *plan.add_units() = plan.units(0);
  plan.mutable_units(1)->set_name("k");
  const uint32_t count = plan.buffers_size();
  for (uint32_t b : {0u, 5u}) {  // p and full
    *plan.add_buffers() = plan.buffers(b);
    plan.mutable_buffers(plan.buffers_size() - 1)->mutable_size()->set_unit(1);
  }
  proto::Program& step = *plan.mutable_programs(0);
  SetWhole(*step.mutable_instructions(1)->add_in(), count + 1);
  SetWhole(*step.mutable_instructions(1)->add_out(), count + 2);

  const uint32_t there = AddBuffer(plan, "m_there", proto::OPTIMIZER_STATE, proto::SizeExpr::UNIT_SLICE, 4);
  plan.mutable_buffers(there - 1)->set_space(proto::HOST);
  plan.mutable_unit_states(2)->set_buffer(there - 1);
  for (const proto::Stream stream : {proto::H2D, proto::D2H}) {
    proto::Instruction& copy = AddInstruction(step, proto::COPY, stream, proto::AXIS_NONE);
    SetWhole(*copy.add_in(), stream == proto::H2D ? there : 3);
    SetWhole(*copy.add_out(), stream == proto::H2D ? 3 : there);
  }
  proto::Instruction& again = AddInstruction(step, proto::KERNEL, proto::COMPUTE, proto::AXIS_NONE);
  again.set_phase("recompute");
  again.set_flops(5);
  again.set_model_flops(3);
  *plan.add_programs() = step;
  plan.mutable_programs(1)->set_name("train_micro");
  plan.mutable_programs(1)->mutable_instructions()->DeleteSubrange(4, 3);  // the optimizer and its copies
  plan.set_micro_steps(4);
  return plan;
}

PlanReport RichReport() {
  const proto::Plan plan = RichPlan();
  const auto bound = BindPlan(plan, {.replica = 1, .shard = 2}, DeviceClass::kCpu);
  EXPECT_TRUE(bound.ok()) << bound.status();
  return ReportPlan(plan, *bound);
}

TEST(ReportTest, ABucketIsOneTransferOfManyBuffers) {
  const ProgramReport step = RichReport().programs[0];
  EXPECT_EQ(step.traffic.total.all_gather.count, 1u);
  EXPECT_EQ(step.traffic.total.all_gather.buffers, 2u);
  EXPECT_EQ(step.traffic.total.all_gather.bytes, 2 * 2 * kBlock * 4);
  for (const Traffic& unit : step.traffic.by_unit) {
    EXPECT_EQ(unit.all_gather.count, 1u);
    EXPECT_EQ(unit.all_gather.bytes, 2 * kBlock * 4);
  }
  EXPECT_EQ(step.traffic.by_axis[proto::AXIS_SHARD].all_gather.bytes, 2 * 2 * kBlock * 4);
  EXPECT_EQ(step.traffic.by_axis[proto::AXIS_WORLD].all_reduce.count, 1u);
}

TEST(ReportTest, CopiesAreNoTrafficBetweenRanks) {
  const TrafficReport traffic = RichReport().programs[0].traffic;
  EXPECT_EQ(traffic.total.h2d.bytes, 2 * kBlock * 4);
  EXPECT_EQ(traffic.total.d2h.bytes, 2 * kBlock * 4);
  EXPECT_EQ(traffic.by_unit[0].h2d.count, 1u);
  EXPECT_EQ(traffic.total.total_bytes(), traffic.total.all_gather.bytes + traffic.total.reduce_scatter.bytes +
                                             traffic.total.all_reduce.bytes);
}

TEST(ReportTest, AStepHasAllItsMicroSteps) {
  const PlanReport report = RichReport();
  EXPECT_EQ(report.micro_steps, 4u);
  ASSERT_EQ(report.programs.size(), 2u);
  EXPECT_EQ(report.programs[1].runs, 3u);
  EXPECT_EQ(report.traffic.total.all_gather.count, 4u);
  EXPECT_EQ(report.traffic.total.h2d.count, 1u);
  EXPECT_EQ(report.traffic.by_unit[1].all_gather.bytes, 4 * 2 * kBlock * 4);
  EXPECT_EQ(report.flops.forward, 4 * 70u);
  EXPECT_EQ(report.flops.recompute, 4 * 5u);
  EXPECT_EQ(report.flops.total(), 4 * 75u + 2 * kBlock * 16);
}

TEST(ReportTest, ModelFlopsAreNoRecomputation) {
  EXPECT_EQ(RichReport().flops.model, 4 * 60u);
  EXPECT_EQ(ModelFlops(RichPlan()), 4 * 60u);
  EXPECT_EQ(ModelFlops(ShardedPlan()), 60u);
}

// Of a buffer that the device does not want nothing is live.
TEST(ReportTest, EmptyBuffersAreNotListed) {
  proto::Plan plan = ShardedPlan();
  const uint32_t scratch = AddBuffer(plan, "scratch", proto::WORKSPACE, proto::SizeExpr::CONSTANT, 0);
  proto::Buffer& buffer = *plan.mutable_buffers(static_cast<int>(scratch) - 1);
  buffer.set_persistent(false);
  buffer.set_first(1);
  buffer.set_last(1);
  buffer.set_cuda_bytes(1000);
  for (const DeviceClass device : kDeviceClasses) {
    const BoundPlan bound = *BindPlan(plan, {.replica = 1, .shard = 2}, device);
    const ArenaReport arena = ReportPlan(plan, bound).memory.device;
    const auto is_scratch = [&](const LiveBuffer& live) { return live.buffer == scratch - 1; };
    EXPECT_EQ(std::count_if(arena.live.begin(), arena.live.end(), is_scratch),
              device == DeviceClass::kCuda ? 1 : 0);
    EXPECT_EQ(arena.by_class[proto::WORKSPACE], device == DeviceClass::kCuda ? 1024u : 0u);
  }
}

TEST(ReportTest, HostMemoryIsCountedApart) {
  const MemoryReport memory = RichReport().memory;
  EXPECT_EQ(memory.host.arena_bytes, 2 * kBlock * 4);
  EXPECT_EQ(memory.host.by_class[proto::OPTIMIZER_STATE], 2 * kBlock * 4);
  EXPECT_EQ(memory.host.padding, 0u);
  EXPECT_EQ(memory.at_rest.host, 2 * kBlock * 4);
  EXPECT_EQ(memory.at_rest.optimizer_state, 2 * 2 * kBlock * 4);
}

TEST(ReportTest, ListsLiveBuffersTheLargestFirst) {
  const ArenaReport arena = Report(2).memory.device;
  uint64_t sum = 0;
  for (size_t i = 0; i < arena.live.size(); ++i) {
    if (i > 0) {
      EXPECT_LE(arena.live[i].bytes, arena.live[i - 1].bytes);
    }
    sum += arena.live[i].bytes;
  }
  EXPECT_EQ(arena.live[0].bytes, 4 * kBlock * 4) << "the gathered unit";
  EXPECT_EQ(sum + arena.padding, arena.arena_bytes);
}

TEST(ReportTest, ParametersAreCountedWithoutPadding) { EXPECT_EQ(Report(2).parameters, 3000u); }

}  // namespace
}  // namespace ft
