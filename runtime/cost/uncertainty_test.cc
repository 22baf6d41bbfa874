#include "runtime/cost/uncertainty.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "runtime/cost/kernel_key.h"
#include "runtime/plan/testing/plan_parts.h"
#include "runtime/plan/testing/targets.h"
#include "runtime/plan/testing/tiny_plan.h"

namespace ft {
namespace {

using namespace plan_parts;

TEST(UncertaintyTest, ErrorsAddByShareAndSpreadsAsSquares) {
  Target::Measured measured;
  measured.add_dtypes(proto::F32);
  EXPECT_EQ(UncertaintyOf({}, measured), 0);
  EXPECT_DOUBLE_EQ(UncertaintyOf({.timed = 2}, measured), kTimedError);
  EXPECT_DOUBLE_EQ(UncertaintyOf({.products = 2}, measured), kFormError);
  EXPECT_DOUBLE_EQ(UncertaintyOf({.timed = 3, .attention = 1}, measured),
                   0.75 * kTimedError + 0.25 * kFormError);
  EXPECT_DOUBLE_EQ(UncertaintyOf({.timed = 1, .collectives = 1}, measured),
                   (kTimedError + kExposedError) / 2);
  EXPECT_DOUBLE_EQ(UncertaintyOf({.timed = 9, .collectives = 1, .by_links = 0.5}, measured),
                   0.9 * kTimedError + 0.05 * kExposedError + 0.05 * kNominalError);
  measured.set_drift(0.04);
  EXPECT_NEAR(UncertaintyOf({.timed = 2}, measured), 0.085, 1e-12) << "8, 15, 17";
  measured.set_drift(0);
  measured.set_kernels(0.1);
  EXPECT_NEAR(UncertaintyOf({.timed = 2}, measured), 0.125, 1e-12) << "3, 4, 5";
  EXPECT_NEAR(UncertaintyOf({.timed = 1, .products = 1}, measured), std::hypot(0.0925, 0.05), 1e-12);
  measured.set_drift(1);
  EXPECT_EQ(UncertaintyOf({.timed = 2}, measured), kMostUncertain);
}

TEST(UncertaintyTest, WhatWasNotMeasuredIsOffByMore) {
  Target::Measured kernels_alone;
  EXPECT_DOUBLE_EQ(UncertaintyOf({.timed = 9, .memory = 0.5, .copies = 0.5}, kernels_alone),
                   0.9 * kTimedError + 0.1 * kNominalError);
  EXPECT_DOUBLE_EQ(UncertaintyOf({.timed = 9, .collectives = 1}, kernels_alone),
                   0.9 * kTimedError + 0.1 * kExposedError)
      << "by logs of nccl-tests";
  Target::Measured fp32;
  fp32.add_dtypes(proto::F32);
  EXPECT_DOUBLE_EQ(UncertaintyOf({.timed = 8, .products = 2, .stated = 1}, fp32),
                   0.8 * kTimedError + 0.1 * kFormError + 0.1 * kNominalError);
}

TEST(UncertaintyTest, SourcesAreAllOfAStepWithoutOverlap) {
  const proto::Plan plan = TinyPlan({.shard = true});
  const BoundPlan bound = *BindPlan(plan, {.replica = 1, .shard = 2}, DeviceClass::kCpu);
  const Target target = RoundTarget();
  const SimulatedProgram step = SimulateStep(plan, bound, target);
  const StepSources sources = SourcesOf(plan, bound, target, step);
  EXPECT_GT(sources.products, 0);
  EXPECT_GT(sources.memory, 0);
  EXPECT_EQ(sources.timed, 0);
  EXPECT_EQ(sources.stated, sources.products) << "nothing was measured";
  Target measured = target;
  measured.mutable_measured()->add_dtypes(proto::F32);
  EXPECT_EQ(SourcesOf(plan, bound, measured, step).stated, 0);
  EXPECT_NEAR(sources.total(), step.compute_seconds + step.exposed_seconds, 1e-9 * step.seconds);
}

TEST(UncertaintyTest, WhatIsAssumedIsSaid) {
  proto::Plan plan = TinyPlan({.shard = true});
  const BoundPlan bound = *BindPlan(plan, {.replica = 1, .shard = 4}, DeviceClass::kCpu);
  Target target = RoundTarget();
  target.set_cuda(false);
  target.set_ranks_per_node(8);
  EXPECT_TRUE(AssumptionsOf(plan, bound, target).empty());
  Target::Measured& measured = *target.mutable_measured();
  measured.set_ranks_on_node(8);
  measured.set_threads(1);
  measured.add_dtypes(proto::F32);
  for (const proto::Opcode kind : {proto::ALL_GATHER, proto::REDUCE_SCATTER, proto::ALL_REDUCE}) {
    Target::Collective* group = target.add_collectives();
    group->set_opcode(kind);
    group->set_nodes(1);
    group->set_ranks_on_node(4);
  }
  EXPECT_EQ(AssumptionsOf(plan, bound, target),
            std::vector<std::string>{
                "an estimate: measured with 8 ranks a host, 1 thread each, and here are 4 on a host"});
  target.set_cuda(true);
  EXPECT_TRUE(AssumptionsOf(plan, bound, target).empty()) << "one GPU is enough to predict many";
  target.set_cuda(false);
  measured.set_ranks_on_node(4);
  EXPECT_TRUE(AssumptionsOf(plan, bound, target).empty());
  // q, k, v, lengths, segments, rng.
  proto::Instruction* attention =
      Kernel(plan.mutable_programs(1), "attention", {Whole(0), Whole(0), Whole(0), {}, {}, {}}, {});
  EXPECT_TRUE(AssumptionsOf(plan, bound, target).empty());
  *attention->mutable_in(4) = Whole(0);
  EXPECT_EQ(AssumptionsOf(plan, bound, target).size(), 1u);
  Kernel(plan.mutable_programs(1), "grouped_dot_grad", {Whole(0)}, {});
  EXPECT_EQ(AssumptionsOf(plan, bound, target).size(), 2u);
  target.clear_collectives();
  ASSERT_EQ(AssumptionsOf(plan, bound, target).size(), 3u);
  EXPECT_EQ(AssumptionsOf(plan, bound, target)[0].rfind("an estimate: collectives among these ranks", 0), 0u);
  measured.clear_dtypes();
  ASSERT_EQ(AssumptionsOf(plan, bound, target).size(), 4u);
  EXPECT_EQ(AssumptionsOf(plan, bound, target)[0].rfind("an estimate: of round no more than kernels was", 0),
            0u);
}

TEST(UncertaintyTest, TypesAndLayoutsThatWereNotMeasuredAreSaid) {
  proto::Plan plan = TinyPlan({.shard = true});
  const BoundPlan bound = *BindPlan(plan, {.replica = 1, .shard = 1}, DeviceClass::kCpu);
  Target target = RoundTarget();
  target.set_ranks_per_node(1);
  Target::Measured& measured = *target.mutable_measured();
  measured.set_ranks_on_node(1);
  measured.set_threads(1);
  measured.add_dtypes(proto::BF16);
  EXPECT_EQ(AssumptionsOf(plan, bound, target),
            std::vector<std::string>{"an estimate: products were measured in bf16, and here are in fp32, at "
                                     "the rate that round states"});
  measured.add_dtypes(proto::F32);
  EXPECT_TRUE(AssumptionsOf(plan, bound, target).empty());
  measured.set_timed_ranks_on_node(1);
  measured.set_timed_threads(2);
  EXPECT_TRUE(AssumptionsOf(plan, bound, target).empty()) << "no kernel of the plan was timed";
  const auto& instructions = plan.programs(1).instructions();
  const auto kernel = std::find_if(instructions.begin(), instructions.end(), [](const auto& instruction) {
    return instruction.opcode() == proto::KERNEL;
  });
  ASSERT_NE(kernel, instructions.end());
  target.add_timed_kernels()->set_key(KernelKey(plan, *kernel));
  EXPECT_EQ(
      AssumptionsOf(plan, bound, target),
      std::vector<std::string>{"an estimate: kernels were timed with 1 rank a host, 2 threads each, all "
                               "else was measured with 1 rank a host, 1 thread each"});
}

}  // namespace
}  // namespace ft
