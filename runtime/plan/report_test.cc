#include "runtime/plan/report.h"

#include <numeric>

#include "gtest/gtest.h"

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
  proto::Unit& unit = *plan.add_units();
  unit.set_name("h");
  unit.set_elements(3 * kBlock);
  proto::Parameter& parameter = *plan.add_parameters();
  parameter.add_shape(50);
  parameter.add_shape(60);
  proto::Plan::UnitBuffers& flat = *plan.add_unit_buffers();
  const auto slice = proto::SizeExpr::UNIT_SLICE;
  flat.set_parameters_plus_one(AddBuffer(plan, "p", proto::PARAMETERS, slice, 4));
  flat.set_gradients_plus_one(AddBuffer(plan, "g", proto::GRADIENTS, slice, 4));
  flat.set_exp_avg_plus_one(AddBuffer(plan, "m", proto::OPTIMIZER_STATE, slice, 4));
  flat.set_exp_avg_sq_plus_one(AddBuffer(plan, "v", proto::OPTIMIZER_STATE, slice, 4));
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
  proto::Instruction& gather = AddInstruction(program, proto::ALL_GATHER, proto::GATHER, proto::AXIS_SHARD);
  gather.set_unit_plus_one(1);
  SetWhole(*gather.add_in(), flat.parameters_plus_one());
  SetWhole(*gather.add_out(), full);
  proto::Instruction& scatter =
      AddInstruction(program, proto::REDUCE_SCATTER, proto::REDUCE, proto::AXIS_SHARD);
  scatter.set_unit_plus_one(1);
  SetWhole(*scatter.add_in(), full);
  SetWhole(*scatter.add_out(), flat.gradients_plus_one());
  SetWhole(*AddInstruction(program, proto::ALL_REDUCE, proto::REDUCE, proto::AXIS_WORLD).add_in(), loss);
  proto::Instruction& adamw = AddInstruction(program, proto::KERNEL, proto::COMPUTE, proto::AXIS_NONE);
  adamw.set_kernel("adamw");
  adamw.set_phase("optimizer");
  adamw.set_flops(3 * kBlock * 16);
  SetWhole(*adamw.add_in(), flat.gradients_plus_one());
  return plan;
}

PlanReport Report(int shard, int replica = 1) {
  const proto::Plan plan = ShardedPlan();
  const auto bound = BindPlan(plan, {.replica = replica, .shard = shard});
  EXPECT_TRUE(bound.ok()) << bound.status();
  return ReportPlan(plan, *bound);
}

TEST(ReportTest, ClassesAndPaddingMakeUpTheArena) {
  for (int ranks : {1, 2, 3, 4, 512}) {
    const MemoryReport memory = Report(ranks).memory;
    EXPECT_EQ(std::accumulate(memory.by_class.begin(), memory.by_class.end(), memory.padding),
              memory.arena_bytes);
    EXPECT_EQ(memory.host_arena_bytes, 0u);
  }
}

TEST(ReportTest, CountsWhatLivesAtThePeak) {
  const MemoryReport memory = Report(2).memory;
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

TEST(ReportTest, ParametersAreCountedWithoutPadding) { EXPECT_EQ(Report(2).parameters, 3000u); }

}  // namespace
}  // namespace ft
