#include "runtime/executor/plan_walk.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "gtest/gtest.h"
#include "runtime/backends/cpu/device/cpu_device.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/executor/walk_inputs.h"
#include "runtime/plan/testing/plan_parts.h"
#include "runtime/plan/testing/tiny_plan.h"

namespace ft {
namespace {

const KernelRegistry& Kernels() {
  static const KernelRegistry* const kKernels = [] {
    auto* registry = new KernelRegistry();
    RegisterCpuKernels(*registry, cpu::BestIsa());
    return registry;
  }();
  return *kKernels;
}

int ProgramIndex(const proto::Plan& plan, const std::string& name) {
  for (int p = 0; p < plan.programs_size(); ++p)
    if (plan.programs(p).name() == name) return p;
  return -1;
}

const float* LossOf(const proto::Plan& plan, const PlanWalk& walk, int program) {
  for (const proto::Port& port : plan.programs(program).outputs())
    if (port.name() == "loss") return walk.operands().Resolve(port.operand()).as<float>();
  return nullptr;
}

TEST(PlanWalkTest, RunsARankOfAnyMeshAndTimesItsKernels) {
  for (const TinyPlanOptions& options :
       {TinyPlanOptions{}, TinyPlanOptions{.shard = false}, TinyPlanOptions{.whole_parameters = true},
        TinyPlanOptions{.two_axes = true}, TinyPlanOptions{.offload = true},
        TinyPlanOptions{.offload = true, .host_step = true}}) {
    const proto::Plan plan = TinyPlan(options);
    const int step = ProgramIndex(plan, "train_step");
    for (const int ranks : {1, 4}) {
      SCOPED_TRACE(::testing::Message() << "shard " << options.shard << " offload " << options.offload
                                        << " host_step " << options.host_step << ", " << ranks << " ranks");
      const auto mesh = MeshFor(plan, ranks, std::min(2, ranks));
      ASSERT_TRUE(mesh.ok()) << mesh.status();
      const auto bound = BindPlan(plan, *mesh, DeviceClass::kCpu);
      ASSERT_TRUE(bound.ok()) << bound.status();
      CpuDevice device(Kernels(), {.num_threads = 1});
      const auto walk = PlanWalk::Create(plan, *bound, device, ranks - 1);
      ASSERT_TRUE(walk.ok()) << walk.status();
      ASSERT_TRUE((*walk)->FillInputs(7).ok());
      ASSERT_TRUE((*walk)->Run(ProgramIndex(plan, "init")).ok());
      ASSERT_TRUE((*walk)->Run(step).ok());
      // Ids are below the vocabulary and weights are drawn: the loss is that of a guess.
      EXPECT_NEAR(*LossOf(plan, **walk, step), std::log(256), 1);
      const auto& instructions = plan.programs(step).instructions();
      for (int i = 0; i < instructions.size(); ++i) {
        const double seconds = (*walk)->seconds(step)[static_cast<size_t>(i)];
        EXPECT_TRUE(instructions[i].opcode() != proto::KERNEL || seconds > 0) << i;
        EXPECT_TRUE(instructions[i].opcode() != proto::WAIT || seconds == 0) << i;
        EXPECT_LT(seconds, 60) << i;
      }
    }
  }
}

// A slice and a whole of a unit of three blocks, which a program gathers and another scatters.
proto::Plan TransferPlan() {
  proto::Plan plan;
  plan.set_block_elements(1024);
  plan.set_shards_parameters(true);
  plan.add_units()->set_elements(3 * 1024);
  for (const auto kind : {proto::SizeExpr::UNIT_SLICE, proto::SizeExpr::UNIT_FULL}) {
    proto::Buffer* buffer = plan.add_buffers();
    buffer->set_persistent(true);
    buffer->mutable_size()->set_kind(kind);
    buffer->mutable_size()->set_value(4);
  }
  for (const proto::Opcode opcode : {proto::ALL_GATHER, proto::REDUCE_SCATTER}) {
    const bool gathers = opcode == proto::ALL_GATHER;
    proto::Program* program = plan.add_programs();
    proto::Instruction* transfer =
        plan_parts::Add(program, opcode, gathers ? proto::GATHER : proto::REDUCE, {});
    transfer->set_axis(proto::AXIS_SHARD);
    *transfer->add_in() = plan_parts::Whole(gathers ? 0 : 1);
    *transfer->add_out() = plan_parts::Whole(gathers ? 1 : 0);
  }
  return plan;
}

TEST(PlanWalkTest, OtherRanksHoldWhatThisOneHolds) {
  const proto::Plan plan = TransferPlan();
  const BoundPlan bound = *BindPlan(plan, {.replica = 1, .shard = 3}, DeviceClass::kCpu);
  CpuDevice device(Kernels(), {.num_threads = 1});
  const auto walk = *PlanWalk::Create(plan, bound, device, 1);
  const Tensor slice = walk->operands().Resolve(plan_parts::Whole(0));
  const Tensor whole = walk->operands().Resolve(plan_parts::Whole(1));
  ASSERT_EQ(slice.elements(), 1024);
  ASSERT_EQ(whole.elements(), 3072);
  for (int64_t i = 0; i < 1024; ++i) slice.as<float>()[i] = static_cast<float>(i + 1);
  ASSERT_TRUE(walk->Run(0).ok());
  for (int64_t i = 0; i < 3072; ++i) ASSERT_EQ(whole.as<float>()[i], static_cast<float>(i % 1024 + 1)) << i;
  for (int64_t i = 0; i < 3072; ++i) whole.as<float>()[i] = static_cast<float>(-i);
  ASSERT_TRUE(walk->Run(1).ok());
  for (int64_t i = 0; i < 1024; ++i) ASSERT_EQ(slice.as<float>()[i], static_cast<float>(-1024 - i)) << i;
  EXPECT_GT(walk->seconds(1)[0], 0);
}

TEST(WalkInputsTest, EveryFillingStaysInItsRange) {
  proto::Plan plan;
  plan.set_seq_len(3);
  plan.set_vocab_size(5);
  const auto filled = [&](proto::Input::Filling filling, uint64_t below) {
    plan.clear_inputs();
    proto::Input* input = plan.add_inputs();
    input->set_name("x");
    input->set_filling(filling);
    input->set_ids_below(below);
    proto::Port port;
    port.set_name("x");
    Tensor tensor{.dtype = DType::kI32, .rank = 2, .dims = {4, 3}};
    const std::vector<char> bytes = *WalkInput(plan, port, tensor, 1);
    std::vector<int32_t> ids(12);
    EXPECT_EQ(bytes.size(), 48u);
    std::memcpy(ids.data(), bytes.data(), 48);
    return ids;
  };
  for (const int32_t id : filled(proto::Input::TOKENS, 0)) EXPECT_TRUE(id >= 0 && id < 5);
  for (const int32_t id : filled(proto::Input::TENSOR, 2)) EXPECT_TRUE(id == 0 || id == 1);
  EXPECT_EQ(filled(proto::Input::POSITIONS, 0), (std::vector<int32_t>{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(filled(proto::Input::SEGMENTS, 0), std::vector<int32_t>(12, 0));
  EXPECT_EQ(filled(proto::Input::LENGTHS, 0), std::vector<int32_t>(12, 3));
  EXPECT_EQ(filled(proto::Input::ATTENTION_MASK, 0), std::vector<int32_t>(12, 1));
}

}  // namespace
}  // namespace ft
