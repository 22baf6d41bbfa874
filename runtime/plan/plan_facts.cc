#include "runtime/plan/plan_facts.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/printable.h"

namespace ft {
namespace {

void SetValue(const FactValue& value, proto::Attribute& attribute) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    attribute.set_s(*text);
  } else if (const auto* flag = std::get_if<bool>(&value)) {
    attribute.set_i(*flag ? 1 : 0);
  } else if (const auto* number = std::get_if<int64_t>(&value)) {
    attribute.set_i(*number);
  } else if (const auto* real = std::get_if<double>(&value)) {
    attribute.set_f(*real);
  } else if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
    attribute.mutable_ints()->mutable_values()->Assign(list->begin(), list->end());
  } else {
    const auto& reals = std::get<std::vector<double>>(value);
    attribute.mutable_reals()->mutable_values()->Assign(reals.begin(), reals.end());
  }
}

// The value in the type of `like`; nothing when it has another one.
std::optional<FactValue> ValueOf(const proto::Attribute& attribute, const FactValue& like) {
  switch (attribute.value_case()) {
    case proto::Attribute::kS:
      return FactValue(attribute.s());
    case proto::Attribute::kF:
      return FactValue(attribute.f());
    case proto::Attribute::kInts:
      return FactValue(
          std::vector<int64_t>(attribute.ints().values().begin(), attribute.ints().values().end()));
    case proto::Attribute::kReals:
      return FactValue(
          std::vector<double>(attribute.reals().values().begin(), attribute.reals().values().end()));
    case proto::Attribute::kI:
      if (!std::holds_alternative<bool>(like)) return FactValue(int64_t{attribute.i()});
      if (attribute.i() == 0 || attribute.i() == 1) return FactValue(attribute.i() == 1);
      return std::nullopt;
    case proto::Attribute::VALUE_NOT_SET:
      break;
  }
  return std::nullopt;
}

}  // namespace

void SetFacts(const ModelFacts& facts, proto::Plan& plan) {
  for (const FactField& field : FactFields()) {
    const FactValue value = GetFact(facts, field);
    if (IsNeutral(field, value)) continue;
    proto::Attribute& attribute = *plan.add_facts();
    attribute.set_name(std::string(field.name));
    SetValue(value, attribute);
  }
}

absl::StatusOr<std::optional<ModelFacts>> FactsOf(const proto::Plan& plan) { return FactsOf(plan.facts()); }

absl::StatusOr<std::optional<ModelFacts>> FactsOf(
    const google::protobuf::RepeatedPtrField<proto::Attribute>& attributes) {
  if (attributes.empty()) return std::nullopt;
  ModelFacts facts;
  std::set<const FactField*> seen;
  for (const proto::Attribute& attribute : attributes) {
    const FactField* field = FindFact(attribute.name());
    if (field == nullptr) {
      return absl::InvalidArgumentError(
          fmt::format("the plan says of its model a fact '{}' that is not known here; it may be of a newer "
                      "ftc: compile the model again",
                      OneLine(attribute.name(), kMaxNameBytes)));
    }
    const std::optional<FactValue> value = ValueOf(attribute, GetFact(facts, *field));
    if (!seen.insert(field).second || !value.has_value() || !SetFact(facts, *field, *value)) {
      return absl::InvalidArgumentError(
          fmt::format("the plan says the fact '{}' of its model twice or in another type", attribute.name()));
    }
  }
  if (std::string error = CheckFacts(facts); !error.empty())
    return absl::InvalidArgumentError("the facts of the plan's model: " + error);
  return facts;
}

}  // namespace ft
