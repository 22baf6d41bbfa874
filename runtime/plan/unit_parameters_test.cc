#include "runtime/plan/unit_parameters.h"

#include <gtest/gtest.h>

#include "runtime/plan/testing/plan_parts.h"
#include "runtime/plan/testing/tiny_plan.h"

namespace ft {
namespace {

void AddParameter(proto::Plan& plan, uint32_t unit, uint64_t offset, const std::vector<uint64_t>& shape,
                  bool decay) {
  proto::Parameter* parameter = plan.add_parameters();
  parameter->set_unit(unit);
  parameter->set_offset(offset);
  parameter->set_decay(decay);
  for (const uint64_t extent : shape) parameter->add_shape(extent);
}

TEST(UnitParametersTest, AreThoseOfThePlanInTheOrderOfTheFlatBuffer) {
  proto::Plan plan;
  for (int i = 0; i < 3; ++i) plan.add_units();
  AddParameter(plan, 2, 1024, {3, 5}, true);
  AddParameter(plan, 0, 0, {}, false);
  AddParameter(plan, 2, 0, {1000}, false);
  const UnitParameters units = ParametersOfUnits(plan);
  ASSERT_EQ(units.size(), 3u);
  EXPECT_TRUE(units[1].empty());
  const auto expect = [](const ParameterRange& range, int64_t begin, int64_t end, bool decays,
                         uint32_t number) {
    EXPECT_EQ(range.begin, begin);
    EXPECT_EQ(range.end, end);
    EXPECT_EQ(range.decays, decays);
    EXPECT_EQ(range.number, number);
  };
  ASSERT_EQ(units[0].size(), 1u);
  expect(units[0][0], 0, 1, false, 1);
  ASSERT_EQ(units[2].size(), 2u);
  expect(units[2][0], 0, 1000, false, 2);
  expect(units[2][1], 1024, 1039, true, 0);
}

TEST(UnitParametersTest, FlatIsAllOfAUnitOrASlice) {
  const proto::Plan plan = TinyPlan({.shard = true, .whole_parameters = true});
  const uint32_t parameters = BufferIndex(plan, "parameters"), loss = BufferIndex(plan, "loss");
  EXPECT_TRUE(IsFlat(plan, plan_parts::Whole(parameters)));
  EXPECT_TRUE(IsFlat(plan, plan_parts::Own(parameters)));
  EXPECT_TRUE(IsFlat(plan, plan_parts::Whole(BufferIndex(plan, "exp_avg"))));
  EXPECT_FALSE(IsFlat(plan, plan_parts::At(parameters, proto::F32, {4, 12})));
  EXPECT_FALSE(IsFlat(plan, plan_parts::Whole(loss)));
  EXPECT_FALSE(IsFlat(plan, proto::Operand()));
}

}  // namespace
}  // namespace ft
