#include <functional>
#include <string>

#include "gtest/gtest.h"
#include "runtime/plan/verify_parts.h"

namespace ft {
namespace {

void AddParameter(const std::string& name, uint64_t rows, uint64_t columns, uint32_t unit,
                  proto::Plan& plan) {
  proto::Parameter& parameter = *plan.add_parameters();
  parameter.set_name(name);
  parameter.add_shape(rows);
  parameter.add_shape(columns);
  parameter.set_unit(unit);
  parameter.set_frozen(unit == 0);
}

void AddState(uint32_t unit, const std::string& role, proto::Plan& plan) {
  plan.add_unit_states()->set_unit(unit);
  plan.mutable_unit_states()->rbegin()->set_role(role);
}

// A module m of [6, 4] with adapters of rank 2, beside a frozen one.
proto::Plan Adapted() {
  proto::Plan plan;
  plan.add_units()->set_name("h.frozen");
  plan.add_units()->set_name("h");
  AddParameter("n.weight", 5, 7, 0, plan);
  AddParameter("m.weight", 6, 4, 0, plan);
  AddParameter("m.lora_A.weight", 2, 4, 1, plan);
  AddParameter("m.lora_B.weight", 6, 2, 1, plan);
  AddState(0, "parameters", plan);
  AddState(1, "parameters", plan);
  AddState(1, "exp_avg", plan);
  plan.mutable_lora()->set_rank(2);
  plan.mutable_lora()->set_alpha(4);
  plan.mutable_lora()->add_modules("m");
  return plan;
}

TEST(VerifyLoraTest, AcceptsBothWaysRound) {
  proto::Plan plan = Adapted();
  EXPECT_EQ(VerifyLora(plan).message(), "");
  plan.mutable_parameters(1)->set_shape(0, 4);
  plan.mutable_parameters(1)->set_shape(1, 6);
  EXPECT_EQ(VerifyLora(plan).message(), "");
  plan.mutable_lora()->set_input_first(true);
  EXPECT_EQ(VerifyLora(plan).message(), "");
  EXPECT_EQ(VerifyLora(proto::Plan()).message(), "");
}

TEST(VerifyLoraTest, RefusesDamage) {
  const auto says = [](const std::function<void(proto::Plan&)>& damage) {
    proto::Plan plan = Adapted();
    damage(plan);
    return std::string(VerifyLora(plan).message());
  };
  const std::string numbers = "invalid plan: it has adapters of rank";
  EXPECT_EQ(says([](auto& p) { p.mutable_lora()->set_rank(0); }).rfind(numbers, 0), 0u);
  EXPECT_EQ(says([](auto& p) { p.mutable_lora()->set_alpha(0.0 / 0.0); }).rfind(numbers, 0), 0u);
  EXPECT_EQ(says([](auto& p) { p.mutable_lora()->set_alpha(-1); }).rfind(numbers, 0), 0u);
  EXPECT_EQ(says([](auto& p) { p.mutable_lora()->set_dropout(1); }).rfind(numbers, 0), 0u);
  EXPECT_EQ(says([](auto& p) { p.mutable_lora()->clear_modules(); }).rfind(numbers, 0), 0u);
  EXPECT_EQ(says([](auto& p) { p.mutable_lora()->set_rank(3); }),
            "invalid plan: the adapters of module 'm' do not fit its weight");
  EXPECT_EQ(says([](auto& p) { p.mutable_lora()->set_input_first(true); }),
            "invalid plan: the adapters of module 'm' do not fit its weight");
  const std::string missing = "' does not have a frozen matrix and adapters";
  EXPECT_EQ(says([](auto& p) { p.mutable_lora()->set_modules(0, "n"); }),
            "invalid plan: module 'n" + missing);
  EXPECT_EQ(says([](auto& p) { p.mutable_lora()->add_modules("x\n"); }),
            "invalid plan: module 'x\\n" + missing);
  EXPECT_EQ(says([](auto& p) { p.mutable_parameters(0)->set_frozen(false); }),
            "invalid plan: unit 'h.frozen' has parameters that are trained and others that are not");
  EXPECT_EQ(says([](auto& p) { p.mutable_lora()->add_saved("n"); }),
            "invalid plan: parameter 'n.weight' is frozen, which its adapters do not say");
  EXPECT_EQ(says([](auto& p) { p.mutable_lora()->add_saved("k"); }),
            "invalid plan: module 'k' has no parameter to be saved");
  EXPECT_EQ(says([](auto& p) { AddParameter("k.weight", 2, 2, 1, p); }),
            "invalid plan: parameter 'k.weight' is trained, which its adapters do not say");
  EXPECT_EQ(says([](auto& p) { AddState(0, "exp_avg", p); }),
            "invalid plan: unit 'h.frozen' is frozen, but has 'exp_avg'");
}

}  // namespace
}  // namespace ft
