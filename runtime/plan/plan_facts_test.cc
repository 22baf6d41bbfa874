#include "runtime/plan/plan_facts.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/base/testing/tiny_facts.h"
#include "runtime/plan/testing/tiny_plan.h"
#include "runtime/plan/verify_plan.h"

namespace ft {
namespace {

ModelFacts SomeFacts() {
  ModelFacts facts = TinyLlamaFacts();
  facts.model_type = "qwen2";
  facts.rope_theta = 1e6;
  facts.qkv_bias = true;
  facts.sliding_window = 16;
  facts.sliding_layers = {1};
  return facts;
}

proto::Plan PlanOf(const ModelFacts& facts) {
  proto::Plan plan;
  SetFacts(facts, plan);
  return plan;
}

proto::Attribute& FactIn(proto::Plan& plan, const std::string& name) {
  for (proto::Attribute& fact : *plan.mutable_facts()) {
    if (fact.name() == name) return fact;
  }
  proto::Attribute& fact = *plan.add_facts();
  fact.set_name(name);
  return fact;
}

TEST(PlanFactsTest, EveryFactComesBack) {
  EXPECT_EQ(**FactsOf(PlanOf(SomeFacts())), SomeFacts());
  for (const FactField& field : FactFields()) {
    ModelFacts facts = SomeFacts();
    FactValue value = GetFact(facts, field);
    if (auto* flag = std::get_if<bool>(&value)) *flag = !*flag;
    if (auto* number = std::get_if<int64_t>(&value)) *number = *number < 0 ? 5 : *number * 2;
    if (auto* real = std::get_if<double>(&value)) *real += 0.1;
    if (auto* list = std::get_if<std::vector<int64_t>>(&value)) *list = {0};
    if (auto* list = std::get_if<std::vector<double>>(&value)) *list = {0.5, -2};
    SetFact(facts, field, value);
    const auto read = FactsOf(PlanOf(facts));
    ASSERT_TRUE(read.ok()) << field.name << ": " << read.status();
    EXPECT_EQ(**read, facts) << field.name;
  }
}

TEST(PlanFactsTest, WhatIsNeutralIsNotWritten) {
  const proto::Plan plan = PlanOf(SomeFacts());
  EXPECT_EQ(plan.facts_size(), 16);
  for (const proto::Attribute& fact : plan.facts()) EXPECT_NE(fact.name(), "logit_softcap");
  EXPECT_FALSE((*FactsOf(proto::Plan())).has_value());
}

TEST(PlanFactsTest, DamageIsRefused) {
  const auto error = [](auto damage) {
    proto::Plan plan = PlanOf(SomeFacts());
    damage(plan);
    const auto facts = FactsOf(plan);
    EXPECT_TRUE(absl::IsInvalidArgument(facts.status())) << facts.status();
    return std::string(facts.status().message());
  };
  EXPECT_NE(error([](proto::Plan& p) { FactIn(p, std::string(1 << 20, 'x')).set_i(1); }).find("compile"),
            std::string::npos);
  EXPECT_LT(error([](proto::Plan& p) { FactIn(p, std::string(1 << 20, 'x')).set_i(1); }).size(), 300u);
  EXPECT_NE(error([](proto::Plan& p) { *p.add_facts() = p.facts(0); }).find("twice"), std::string::npos);
  EXPECT_NE(error([](proto::Plan& p) { FactIn(p, "hidden_size").set_f(64); }).find("another type"),
            std::string::npos);
  EXPECT_NE(error([](proto::Plan& p) { FactIn(p, "qkv_bias").set_i(2); }).find("another type"),
            std::string::npos);
  EXPECT_NE(error([](proto::Plan& p) { FactIn(p, "hidden_size").clear_value(); }).find("another type"),
            std::string::npos);
  EXPECT_NE(error([](proto::Plan& p) { FactIn(p, "hidden_size").set_i(-1); }).find("hidden_size is -1"),
            std::string::npos);
}

TEST(PlanFactsTest, AreVerifiedWithThePlan) {
  proto::Plan plan = TinyPlan();
  ASSERT_TRUE(VerifyPlan(plan).ok());
  SetFacts(SomeFacts(), plan);
  EXPECT_TRUE(VerifyPlan(plan).ok()) << VerifyPlan(plan);
  FactIn(plan, "num_kv_heads").set_i(3);
  EXPECT_NE(VerifyPlan(plan).message().find("num_kv_heads, 3"), std::string::npos) << VerifyPlan(plan);
}

}  // namespace
}  // namespace ft
