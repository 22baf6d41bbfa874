#include "runtime/base/model_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ranges>

#include "runtime/base/printable.h"

namespace ft {
namespace {

// Far above any model, and the product of two stays inside 64 bits.
constexpr int64_t kMaxNumber = int64_t{1} << 31;
constexpr size_t kShownElements = 8;
constexpr size_t kShownBytes = 64;

using Facts = ModelFacts;

// Name and member in one, so that they cannot differ.
#define FT_FACT(fact) .name = #fact, .member = &Facts::fact

constexpr std::array kFields = {
    FactField{FT_FACT(model_type), .required = true},
    FactField{FT_FACT(vocab_size)},
    FactField{FT_FACT(hidden_size), .required = true},
    FactField{FT_FACT(num_layers), .required = true},
    FactField{FT_FACT(num_heads), .required = true},
    FactField{FT_FACT(num_kv_heads), .required = true},
    FactField{FT_FACT(head_size), .required = true},
    FactField{FT_FACT(intermediate_size), .required = true},
    FactField{FT_FACT(max_positions), .required = true},
    FactField{FT_FACT(positions), .allowed = "rope|learned"},
    FactField{FT_FACT(rope_theta)},
    FactField{FT_FACT(rope_theta_sliding)},
    FactField{FT_FACT(rope_type)},
    FactField{FT_FACT(rope_factor)},
    FactField{FT_FACT(rope_low_freq_factor)},
    FactField{FT_FACT(rope_high_freq_factor)},
    FactField{FT_FACT(rope_original_positions)},
    FactField{FT_FACT(rope_beta_fast)},
    FactField{FT_FACT(rope_beta_slow)},
    FactField{FT_FACT(rope_attention_factor)},
    FactField{FT_FACT(rope_short_factors)},
    FactField{FT_FACT(rope_long_factors)},
    FactField{FT_FACT(rope_fraction)},
    FactField{FT_FACT(layers_without_rope)},
    FactField{FT_FACT(norm), .allowed = "rms_norm|rms_norm_plus_one|layer_norm"},
    FactField{FT_FACT(norm_placement), .allowed = "pre|both|post|output"},
    FactField{FT_FACT(norm_eps)},
    FactField{FT_FACT(activation), .required = true},
    FactField{FT_FACT(gated_mlp)},
    FactField{FT_FACT(qkv_bias)},
    FactField{FT_FACT(attention_output_bias)},
    FactField{FT_FACT(mlp_bias)},
    FactField{FT_FACT(parallel_residual)},
    FactField{FT_FACT(qk_norm), .allowed = "none|head|projection"},
    FactField{FT_FACT(tied_head)},
    FactField{FT_FACT(causal)},
    FactField{FT_FACT(padding_token)},
    FactField{FT_FACT(sliding_window)},
    FactField{FT_FACT(sliding_layers)},
    FactField{FT_FACT(attention_scale)},
    FactField{FT_FACT(attention_scale_by_layer)},
    FactField{FT_FACT(attention_softcap)},
    FactField{FT_FACT(logit_softcap)},
    FactField{FT_FACT(embedding_multiplier)},
    FactField{FT_FACT(residual_multiplier)},
    FactField{FT_FACT(logit_multiplier)},
    FactField{FT_FACT(num_experts)},
    FactField{FT_FACT(experts_per_token)},
    FactField{FT_FACT(normalized_routing)},
    FactField{FT_FACT(router_loss)},
    FactField{FT_FACT(num_labels)},
    FactField{FT_FACT(token_types)},
    FactField{FT_FACT(image_size)},
    FactField{FT_FACT(patch_size)},
    FactField{FT_FACT(num_channels)},
    FactField{FT_FACT(embedding_dropout)},
    FactField{FT_FACT(residual_dropout)},
    FactField{FT_FACT(attention_dropout)},
    FactField{FT_FACT(latent_bits)},
};

#undef FT_FACT

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};

std::string CheckText(const FactField& field, const std::string& value) {
  if (field.required && value.empty()) return fmt::format("{} is missing", field.name);
  if (field.allowed.empty()) return "";
  for (const auto allowed : std::views::split(field.allowed, '|')) {
    if (std::ranges::equal(allowed, value)) return "";
  }
  return fmt::format("{} is {}; expected one of {}", field.name, FactText(value), field.allowed);
}

std::string CheckNumber(const FactField& field, int64_t value) {
  if (field.required && value == 0) return fmt::format("{} is missing", field.name);
  // Only what means "none" is negative.
  const int64_t least = std::min<int64_t>(std::get<int64_t>(GetFact(ModelFacts(), field)), 0);
  if (value >= least && value <= kMaxNumber) return "";
  return fmt::format("{} is {}; expected a number from {} to {}", field.name, value, least, kMaxNumber);
}

std::string CheckReal(const FactField& field, double value) {
  return std::isfinite(value) ? "" : fmt::format("{} is {}; expected a finite number", field.name, value);
}

std::string CheckReals(const FactField& field, const std::vector<double>& values) {
  for (const double value : values) {
    if (std::string error = CheckReal(field, value); !error.empty()) return error;
  }
  return "";
}

std::string CheckLayers(const FactField& field, const std::vector<int64_t>& value, int64_t num_layers) {
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] < 0 || value[i] >= num_layers || (i > 0 && value[i] <= value[i - 1]))
      return fmt::format("{} is {}; expected numbers of layers, growing", field.name, FactText(value));
  }
  return "";
}

std::string CheckField(const ModelFacts& facts, const FactField& field) {
  return std::visit(
      Overloaded{
          [&](const std::string& value) { return CheckText(field, value); },
          [&](bool) { return std::string(); }, [&](int64_t value) { return CheckNumber(field, value); },
          [&](double value) { return CheckReal(field, value); },
          [&](const std::vector<int64_t>& value) { return CheckLayers(field, value, facts.num_layers); },
          [&](const std::vector<double>& value) { return CheckReals(field, value); }},
      GetFact(facts, field));
}

}  // namespace

absl::Span<const FactField> FactFields() { return kFields; }

const FactField* FindFact(std::string_view name) {
  const auto found =
      std::find_if(kFields.begin(), kFields.end(), [&](const FactField& f) { return f.name == name; });
  return found == kFields.end() ? nullptr : &*found;
}

const FactField& FactOf(FactMember member) {
  return *std::find_if(kFields.begin(), kFields.end(),
                       [&](const FactField& f) { return f.member == member; });
}

FactValue GetFact(const ModelFacts& facts, const FactField& field) {
  return std::visit([&](auto member) { return FactValue(facts.*member); }, field.member);
}

bool SetFact(ModelFacts& facts, const FactField& field, const FactValue& value) {
  if (field.member.index() != value.index()) return false;
  std::visit(
      [&](auto member) {
        using Value = std::remove_reference_t<decltype(facts.*member)>;
        facts.*member = std::get<Value>(value);
      },
      field.member);
  return true;
}

bool IsNeutral(const FactField& field, const FactValue& value) {
  return !field.required && GetFact(ModelFacts(), field) == value;
}

std::string FactText(const FactValue& value) {
  return std::visit(
      Overloaded{[](const std::string& text) { return fmt::format("\"{}\"", OneLine(text, kShownBytes)); },
                 [](bool flag) { return std::string(flag ? "true" : "false"); },
                 [](int64_t number) { return fmt::format("{}", number); },
                 [](double number) { return fmt::format("{}", number); },
                 [](const auto& list) {
                   const size_t shown = std::min(list.size(), kShownElements);
                   return fmt::format("[{}{}]", fmt::join(list.begin(), list.begin() + shown, ", "),
                                      shown < list.size() ? ", ..." : "");
                 }},
      value);
}

std::string CheckFacts(const ModelFacts& facts) {
  for (const FactField& field : kFields) {
    if (std::string error = CheckField(facts, field); !error.empty()) return error;
  }
  if (facts.num_heads % facts.num_kv_heads != 0)
    return fmt::format("num_heads is {}, which is not divisible by num_kv_heads, {}", facts.num_heads,
                       facts.num_kv_heads);
  return "";
}

}  // namespace ft
