#include "runtime/cost/scale_timed.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "runtime/cost/instruction_cost.h"
#include "runtime/cost/kernel_key.h"
#include "runtime/plan/testing/plan_parts.h"
#include "runtime/plan/testing/targets.h"

namespace ft {
namespace {

using namespace plan_parts;

// A product that computing holds up and a look-up that memory does, each timed at 9 seconds, twice what the
// forms say without a latency.
class ScaleTimedTest : public testing::Test {
 protected:
  ScaleTimedTest() {
    plan_.set_block_elements(1024);
    plan_.add_units()->set_elements(4096);
    proto::SizeExpr* size = plan_.add_buffers()->mutable_size();
    size->set_kind(proto::SizeExpr::UNIT_FULL);
    size->set_value(4);
    target_.mutable_f32()->set_reached(1000);
    target_.set_memory_bytes_per_s(100);
    target_.set_kernel_latency_s(0);
    proto::Program* program = plan_.add_programs();
    Kernel(program, "matmul", {At(0, proto::F32, {4, 8}), At(0, proto::F32, {8, 2})},
           {At(0, proto::F32, {4, 2})})
        ->set_flops(4500);
    Kernel(program, "embedding", {At(0, proto::F32, {4})}, {})->set_bytes(450);
    for (const proto::Instruction& kernel : program->instructions()) AddTimed(KernelKey(plan_, kernel));
    AddTimed(KernelKey(plan_, product()) ^ 1);  // of another plan
    std::sort(target_.mutable_timed_kernels()->begin(), target_.mutable_timed_kernels()->end(),
              [](const auto& a, const auto& b) { return a.key() < b.key(); });
  }

  void AddTimed(uint64_t key) {
    Target::TimedKernel* timed = target_.add_timed_kernels();
    timed->set_key(key);
    timed->set_seconds(9);
    timed->set_share(1);
  }

  const proto::Instruction& product() const { return plan_.programs(0).instructions(0); }
  const proto::Instruction& look_up() const { return plan_.programs(0).instructions(1); }
  double Seconds(const proto::Instruction& kernel, const Target& target) const {
    return InstructionSeconds(plan_, mesh_, kernel, target);
  }

  proto::Plan plan_;
  Target target_ = RoundTarget();
  Mesh mesh_;
};

TEST_F(ScaleTimedTest, EachKernelFollowsTheRateThatHoldsItUp) {
  Target faster = target_;
  faster.mutable_f32()->set_reached(1500);
  EXPECT_EQ(Seconds(product(), faster), 9);
  ScaleTimed(plan_, mesh_, target_, faster);
  EXPECT_NEAR(Seconds(product(), faster), 6, 1e-9);
  EXPECT_NEAR(Seconds(look_up(), faster), 9, 1e-9);
  faster = target_;
  faster.set_memory_bytes_per_s(300);
  ScaleTimed(plan_, mesh_, target_, faster);
  EXPECT_NEAR(Seconds(product(), faster), 9, 1e-9);
  EXPECT_NEAR(Seconds(look_up(), faster), 3, 1e-9);
}

TEST_F(ScaleTimedTest, WhatIsNotOfThePlanStays) {
  Target faster = target_;
  faster.mutable_f32()->set_reached(1500);
  ScaleTimed(plan_, mesh_, target_, faster);
  const uint64_t other = KernelKey(plan_, product()) ^ 1;
  const auto found = std::find_if(faster.timed_kernels().begin(), faster.timed_kernels().end(),
                                  [&](const Target::TimedKernel& timed) { return timed.key() == other; });
  ASSERT_NE(found, faster.timed_kernels().end());
  EXPECT_EQ(found->seconds(), 9);
  target_.clear_timed_kernels();
  faster = target_;
  ScaleTimed(plan_, mesh_, target_, faster);
  EXPECT_EQ(faster.SerializeAsString(), target_.SerializeAsString());
}

}  // namespace
}  // namespace ft
