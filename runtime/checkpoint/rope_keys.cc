#include "runtime/checkpoint/rope_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ft {

using nlohmann::json;

namespace {

// LongRoPE had other names, one of which is now another type's: its tables tell.
std::string RopeType(ConfigReader& config) {
  const std::string old_name = config.Text("type").value_or("default");
  const bool is_new = config.Has("rope_type");
  std::string type = config.Text("rope_type").value_or(old_name);
  if (type == "su" || (type == "yarn" && config.Has("short_factor"))) type = "longrope";
  config.Set(&ModelFacts::rope_type, type, is_new || !config.Has("type") ? "rope_type" : "type");
  return type;
}

bool KnowsItsTraining(const std::string& type) {
  return type == "llama3" || type == "yarn" || type == "longrope";
}

// How many times longer the context is than that of training.
void SetRatioOfContexts(ConfigReader& config) {
  const auto original = static_cast<double>(config.facts().rope_original_positions);
  if (original > 0)
    config.Set(&ModelFacts::rope_factor, static_cast<double>(config.facts().max_positions) / original,
               "factor");
}

// The keys of rope_scaling or rope_parameters, which has been entered. `beside`: the context of training that
// stands beside the object, which goes before that in it.
void ReadScaling(ConfigReader& config, std::optional<int64_t> beside = {}) {
  const std::string type = RopeType(config);
  if (type == "default") {
    config.Ignore({"original_max_position_embeddings", "factor"});
    return;
  }
  config.Read("factor", &ModelFacts::rope_factor, 1.0);
  if (type == "linear") return;
  config.Read("original_max_position_embeddings", &ModelFacts::rope_original_positions,
              config.facts().max_positions, config.facts().max_positions);
  if (beside.has_value() && KnowsItsTraining(type))
    config.Set(&ModelFacts::rope_original_positions, *beside, "original_max_position_embeddings");
  if (type == "llama3") {
    config.Read("low_freq_factor", &ModelFacts::rope_low_freq_factor, 0);
    config.Read("high_freq_factor", &ModelFacts::rope_high_freq_factor, 0);
  } else if (type == "yarn") {
    config.Read("beta_fast", &ModelFacts::rope_beta_fast, 32, 32);
    config.Read("beta_slow", &ModelFacts::rope_beta_slow, 1, 1);
    if (!config.Flag("truncate").value_or(true))
      config.Fault("truncate of rope is false, which is not understood");
  } else if (type == "longrope") {
    if (!config.Has("factor")) SetRatioOfContexts(config);
    if (auto factors = config.Reals("short_factor"))
      config.Set(&ModelFacts::rope_short_factors, *std::move(factors), "short_factor");
    if (auto factors = config.Reals("long_factor"))
      config.Set(&ModelFacts::rope_long_factors, *std::move(factors), "long_factor");
  }
  if (type == "yarn" || type == "longrope") {
    config.Read("attention_factor", &ModelFacts::rope_attention_factor, 0, 0);
  }
}

// A number that stands in an object or, as older versions have it, beside it.
void ReadNumber(ConfigReader& config, std::string_view object, std::string_view key,
                double ModelFacts::* fact, double absent) {
  if (object.empty()) {
    config.Read(key, fact, absent, absent);
    return;
  }
  const std::optional<double> beside = config.Real(key);
  if (config.Enter(object)) {
    const bool inside = config.Has(key);
    if (inside) config.Read(key, fact, absent);
    config.Leave();
    if (!inside) return config.Read(key, fact, absent, absent);
    if (beside.has_value() && *beside != config.facts().*fact) {
      config.Fault(fmt::format("{} is {} and {}.{} is {}", key, *beside, object, key, config.facts().*fact));
    }
  }
}

// The keys of a type that transformers has; of any other there are none, and reading back finds that.
json RopeScaling(const ModelFacts& facts) {
  const std::string& type = facts.rope_type;
  json scaling = json::object();
  if (type != "linear" && type != "dynamic" && !KnowsItsTraining(type)) return scaling;
  scaling["rope_type"] = type;
  scaling["factor"] = facts.rope_factor;
  if (type == "linear") return scaling;
  scaling["original_max_position_embeddings"] = facts.rope_original_positions;
  if (type == "llama3") {
    scaling["low_freq_factor"] = facts.rope_low_freq_factor;
    scaling["high_freq_factor"] = facts.rope_high_freq_factor;
  } else if (type == "yarn") {
    scaling["beta_fast"] = facts.rope_beta_fast;
    scaling["beta_slow"] = facts.rope_beta_slow;
  } else if (type == "longrope") {
    scaling["short_factor"] = facts.rope_short_factors;
    scaling["long_factor"] = facts.rope_long_factors;
    if (HasRatioOfContexts(facts)) scaling.erase("factor");
  }
  if (facts.rope_attention_factor != 0) scaling["attention_factor"] = facts.rope_attention_factor;
  return scaling;
}

}  // namespace

void ReadRope(ConfigReader& config, double theta, double fraction) {
  config.Set(&ModelFacts::positions, std::string("rope"));
  const std::optional<int64_t> beside = config.Number("original_max_position_embeddings");
  std::string object;
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    if (!config.Enter(name)) continue;
    const ModelFacts before = config.facts();
    ReadScaling(config, beside);
    config.Leave();
    // A file for both versions says the same twice.
    if (!object.empty() && config.facts() != before)
      config.Fault("rope_scaling and rope_parameters are both there; which is meant?");
    object = name;
  }
  ReadNumber(config, object, "rope_theta", &ModelFacts::rope_theta, theta);
  ReadNumber(config, object, "partial_rotary_factor", &ModelFacts::rope_fraction, fraction);
}

bool HasRatioOfContexts(const ModelFacts& facts) {
  const auto original = static_cast<double>(facts.rope_original_positions);
  return original > 0 && facts.rope_factor == static_cast<double>(facts.max_positions) / original;
}

void WriteRope(const ModelFacts& facts, json& config) {
  json scaling = RopeScaling(facts);
  config["rope_theta"] = facts.rope_theta;
  config["rope_scaling"] = scaling.empty() ? json(nullptr) : scaling;
  if (scaling.empty()) scaling["rope_type"] = "default";
  scaling["rope_theta"] = facts.rope_theta;
  config["rope_parameters"] = std::move(scaling);
}

void WriteRopeOfPart(const ModelFacts& facts, json& config) {
  WriteRope(facts, config);
  config["partial_rotary_factor"] = facts.rope_fraction;
  config["rope_parameters"]["partial_rotary_factor"] = facts.rope_fraction;
}

void ReadRopeByLayer(ConfigReader& config, double theta, double sliding_theta) {
  config.Set(&ModelFacts::positions, std::string("rope"));
  const bool old_names = config.Has("rope_theta") || config.Has("rope_local_base_freq");
  if (config.Enter("rope_scaling")) {
    ReadScaling(config);
    config.Leave();
  }
  config.Read("rope_theta", &ModelFacts::rope_theta, theta, theta);
  config.Read("rope_local_base_freq", &ModelFacts::rope_theta_sliding, sliding_theta, sliding_theta);
  const ModelFacts before = config.facts();
  if (config.Enter("rope_parameters")) {
    if (config.Enter("full_attention")) {
      ReadScaling(config);
      config.Read("rope_theta", &ModelFacts::rope_theta, theta);
      config.Leave();
    }
    if (config.Enter("sliding_attention")) {
      if (const std::string type = config.Text("rope_type").value_or("default"); type != "default")
        config.Fault(fmt::format("rope_parameters.sliding_attention.rope_type is {}, which is not understood",
                                 QuotedText(type)));
      config.Read("rope_theta", &ModelFacts::rope_theta_sliding, sliding_theta);
      config.Leave();
    }
    config.Leave();
    if (old_names && config.facts() != before)
      config.Fault("rope_theta, rope_local_base_freq and rope_parameters differ; which is meant?");
  }
  if (config.facts().rope_theta_sliding == config.facts().rope_theta)
    config.Set(&ModelFacts::rope_theta_sliding, 0.0, "rope_local_base_freq");
}

void WriteRopeByLayer(const ModelFacts& facts, json& config) {
  WriteRope(facts, config);
  const double sliding = facts.rope_theta_sliding > 0 ? facts.rope_theta_sliding : facts.rope_theta;
  config["rope_local_base_freq"] = sliding;
  config["rope_parameters"] = {{"full_attention", config["rope_parameters"]},
                               {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", sliding}}}};
}

void ReadSlidingLayers(ConfigReader& config, int64_t window, std::string_view window_key,
                       absl::FunctionRef<bool(int64_t layer)> slides) {
  const int64_t layers = config.facts().num_layers;
  std::vector<int64_t> sliding;
  if (const auto types = config.Texts("layer_types")) {
    if (static_cast<int64_t>(types->size()) != layers) {
      config.Fault(
          fmt::format("layer_types has {} elements, but there are {} layers", types->size(), layers));
      config.SetUnknown(&ModelFacts::sliding_layers);
    }
    for (size_t i = 0; i < types->size(); ++i) {
      if ((*types)[i] == "sliding_attention") {
        sliding.push_back(static_cast<int64_t>(i));
      } else if ((*types)[i] != "full_attention") {
        config.Fault(fmt::format("layer_types has a {}, which is not understood", QuotedText((*types)[i])));
        break;
      }
    }
  } else if (window > 0 && layers <= kMaxConfigList) {
    for (int64_t i = 0; i < layers; ++i) {
      if (slides(i)) sliding.push_back(i);
    }
  }
  config.Set(&ModelFacts::sliding_window, sliding.empty() ? 0 : window, window_key);
  if (window > 0 && static_cast<int64_t>(sliding.size()) < layers)
    config.Set(&ModelFacts::sliding_layers, std::move(sliding), "layer_types");
}

bool Slides(const ModelFacts& facts, int64_t layer) {
  const std::vector<int64_t>& sliding = facts.sliding_layers;
  return facts.sliding_window > 0 &&
         (sliding.empty() || std::binary_search(sliding.begin(), sliding.end(), layer));
}

void WriteSlidingLayers(const ModelFacts& facts, json& config) {
  config["sliding_window"] = facts.sliding_window > 0 ? json(facts.sliding_window) : json(nullptr);
  json& types = config["layer_types"] = json::array();
  for (int64_t layer = 0; layer < facts.num_layers; ++layer)
    types.push_back(Slides(facts, layer) ? "sliding_attention" : "full_attention");
}

}  // namespace ft
