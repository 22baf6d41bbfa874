#include "runtime/plan/link_use.h"

#include "gtest/gtest.h"
#include "runtime/plan/testing/plan_parts.h"
#include "runtime/plan/testing/tiny_plan.h"

namespace ft {
namespace {

std::vector<LinkUse> UsesOn(const proto::Plan& plan, const Mesh& mesh) {
  const absl::StatusOr<BoundPlan> bound = BindPlan(plan, mesh, DeviceClass::kCpu);
  EXPECT_TRUE(bound.ok()) << bound.status();
  return LinkUses(plan, *bound);
}

std::vector<std::string> Names(const std::vector<LinkUse>& uses) {
  std::vector<std::string> names;
  for (const LinkUse& use : uses) names.push_back(NameOf(use));
  return names;
}

TEST(LinkUseTest, OneRankSendsNothing) { EXPECT_TRUE(UsesOn(TinyPlan(), {}).empty()); }

TEST(LinkUseTest, AxesThatAreTheSameRanksAreOne) {
  EXPECT_EQ(Names(UsesOn(TinyPlan(), {.shard = 4})),
            (std::vector<std::string>{"all_gather over shard", "reduce_scatter over shard",
                                      "all_reduce over shard"}));
  EXPECT_EQ(Names(UsesOn(TinyPlan({.shard = false}), {.replica = 4})),
            (std::vector<std::string>{"all_reduce over replica"}));
}

TEST(LinkUseTest, EachAxisOfAHybridMesh) {
  const std::vector<LinkUse> uses = UsesOn(TinyPlan({.two_axes = true}), {.replica = 2, .shard = 3});
  EXPECT_EQ(Names(uses), (std::vector<std::string>{"all_gather over shard", "reduce_scatter over shard",
                                                   "all_reduce over shard", "all_reduce over replica",
                                                   "all_reduce over world"}));
  for (const LinkUse& use : uses)
    EXPECT_EQ(use.ranks, use.axis == proto::AXIS_SHARD ? 3 : use.axis == proto::AXIS_REPLICA ? 2 : 6);
}

TEST(LinkUseTest, SizesAndCallsAreThoseOfAStep) {
  using namespace plan_parts;
  proto::Plan plan;
  plan.set_micro_steps(3);
  plan.add_buffers();
  for (const char* name : {"init", "train_micro", "train_step", "eval_step"}) {
    proto::Program* program = plan.add_programs();
    program->set_name(name);
    for (const uint64_t elements : {10, 10, 100}) {
      proto::Instruction* reduce = Add(program, proto::ALL_REDUCE, proto::REDUCE, {});
      reduce->set_axis(proto::AXIS_WORLD);
      proto::Operand* operand = reduce->add_in();
      operand->set_buffer_plus_one(1);
      operand->add_shape(elements);
      operand->set_dtype(elements == 100 ? proto::BF16 : proto::I64);
    }
  }
  BoundPlan bound;
  bound.mesh = {.replica = 2, .shard = 2};
  const std::vector<LinkUse> uses = LinkUses(plan, bound);
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_EQ(uses[0].calls, 9);  // two micro-steps and the step
  EXPECT_EQ(uses[0].largest_bytes, 200u);
  EXPECT_EQ(uses[0].typical_bytes, 200u);  // 160 bytes go in the small ones of each run, 200 in the large
  EXPECT_EQ(uses[0].dtype, proto::BF16);
  EXPECT_EQ(uses[0].bytes, 3u * (80 + 80 + 200));
  EXPECT_EQ(uses[0].axis, proto::AXIS_WORLD);
}

}  // namespace
}  // namespace ft
