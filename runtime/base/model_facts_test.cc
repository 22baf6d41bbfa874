#include "runtime/base/model_facts.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>

#include "runtime/base/testing/tiny_facts.h"

namespace ft {
namespace {

struct AnyValue {
  template <typename T>
  operator T() const;
};

// Of an aggregate: with how many values, and no more, it can be initialised.
template <typename T, typename... Values>
consteval size_t NumMembers() {
  if constexpr (requires { T{Values{}..., AnyValue{}}; }) {
    return NumMembers<T, Values..., AnyValue>();
  } else {
    return sizeof...(Values);
  }
}

// A value of the field's type that no default has.
FactValue Other(const FactField& field) {
  FactValue value = GetFact(ModelFacts(), field);
  if (auto* text = std::get_if<std::string>(&value)) *text = "other";
  if (auto* flag = std::get_if<bool>(&value)) *flag = !*flag;
  if (auto* number = std::get_if<int64_t>(&value)) *number = 77;
  if (auto* real = std::get_if<double>(&value)) *real = 0.375;
  if (auto* list = std::get_if<std::vector<int64_t>>(&value)) *list = {0, 1};
  if (auto* list = std::get_if<std::vector<double>>(&value)) *list = {0.5, 2};
  return value;
}

TEST(ModelFactsTest, EveryMemberHasOneField) {
  std::set<std::string_view> names;
  for (const FactField& field : FactFields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_EQ(FindFact(field.name), &field);
    EXPECT_EQ(&FactOf(field.member), &field);
  }
  EXPECT_EQ(FindFact("hidden"), nullptr);
  static_assert(NumMembers<ModelFacts>() > 10);
  EXPECT_EQ(FactFields().size(), NumMembers<ModelFacts>());
}

TEST(ModelFactsTest, ValuesAreTyped) {
  ModelFacts facts;
  for (const FactField& field : FactFields()) {
    const FactValue value = Other(field);
    EXPECT_FALSE(IsNeutral(field, value)) << field.name;
    EXPECT_EQ(IsNeutral(field, GetFact(facts, field)), !field.required) << field.name;
    EXPECT_TRUE(SetFact(facts, field, value)) << field.name;
    EXPECT_EQ(GetFact(facts, field), value) << field.name;
    for (const FactField& other : FactFields()) {
      if (other.member.index() == field.member.index()) continue;
      EXPECT_FALSE(SetFact(facts, field, Other(other))) << field.name;
      EXPECT_EQ(GetFact(facts, field), value) << field.name;
    }
  }
}

TEST(ModelFactsTest, Text) {
  EXPECT_EQ(FactText(int64_t{64}), "64");
  EXPECT_EQ(FactText(1e-5), "1e-05");
  EXPECT_EQ(FactText(500000.0), "500000");
  EXPECT_EQ(FactText(true), "true");
  EXPECT_EQ(FactText(std::string("silu")), "\"silu\"");
  EXPECT_EQ(FactText(std::vector<int64_t>{0, 2}), "[0, 2]");
  EXPECT_LT(FactText(std::string(100000, 'x')).size(), 100u);
  EXPECT_EQ(FactText(std::vector<int64_t>(1000, 1)), "[1, 1, 1, 1, 1, 1, 1, 1, ...]");
}

TEST(ModelFactsTest, Check) {
  EXPECT_EQ(CheckFacts(TinyLlamaFacts()), "");
  const auto error = [](auto change) {
    ModelFacts facts = TinyLlamaFacts();
    change(facts);
    return CheckFacts(facts);
  };
  for (const FactField& field : FactFields()) {
    if (!field.required) continue;
    ModelFacts facts = TinyLlamaFacts();
    SetFact(facts, field, GetFact(ModelFacts(), field));
    EXPECT_EQ(CheckFacts(facts), std::string(field.name) + " is missing");
  }
  EXPECT_EQ(error([](ModelFacts& f) { f.hidden_size = -1; }),
            "hidden_size is -1; expected a number from 0 to 2147483648");
  EXPECT_EQ(error([](ModelFacts& f) { f.norm_eps = std::numeric_limits<double>::quiet_NaN(); }),
            "norm_eps is nan; expected a finite number");
  EXPECT_EQ(error([](ModelFacts& f) { f.norm = "batch_norm"; }),
            "norm is \"batch_norm\"; expected one of rms_norm|rms_norm_plus_one|layer_norm");
  EXPECT_EQ(error([](ModelFacts& f) { f.num_kv_heads = 3; }),
            "num_heads is 4, which is not divisible by num_kv_heads, 3");
  EXPECT_EQ(error([](ModelFacts& f) { f.sliding_layers = {0, 2}; }),
            "sliding_layers is [0, 2]; expected numbers of layers, growing");
  EXPECT_EQ(error([](ModelFacts& f) { f.sliding_layers = {1, 0}; }),
            "sliding_layers is [1, 0]; expected numbers of layers, growing");
}

}  // namespace
}  // namespace ft
