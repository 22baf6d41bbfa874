#include "runtime/checkpoint/rope_keys.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace ft {
namespace {

std::string RopeType(ConfigReader& config) {
  const std::string old_name = config.Text("type").value_or("default");
  const bool is_new = config.Has("rope_type");
  std::string type = config.Text("rope_type").value_or(old_name);
  config.Set(&ModelFacts::rope_type, type, is_new || !config.Has("type") ? "rope_type" : "type");
  return type;
}

// The keys of rope_scaling or rope_parameters, which has been entered.
void ReadScaling(ConfigReader& config) {
  const std::string type = RopeType(config);
  if (type == "default") {
    config.Ignore({"original_max_position_embeddings", "factor"});
    return;
  }
  config.Read("factor", &ModelFacts::rope_factor, 1.0);
  if (type == "linear") return;
  config.Read("original_max_position_embeddings", &ModelFacts::rope_original_positions,
              config.facts().max_positions, config.facts().max_positions);
  if (type == "llama3") {
    config.Read("low_freq_factor", &ModelFacts::rope_low_freq_factor, 0);
    config.Read("high_freq_factor", &ModelFacts::rope_high_freq_factor, 0);
  } else if (type == "yarn") {
    config.Read("beta_fast", &ModelFacts::rope_beta_fast, 32, 32);
    config.Read("beta_slow", &ModelFacts::rope_beta_slow, 1, 1);
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

}  // namespace

void ReadRope(ConfigReader& config, double theta) {
  config.Set(&ModelFacts::positions, std::string("rope"));
  std::string object;
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    if (!config.Enter(name)) continue;
    const ModelFacts before = config.facts();
    ReadScaling(config);
    config.Leave();
    // A file for both versions says the same twice.
    if (!object.empty() && config.facts() != before)
      config.Fault("rope_scaling and rope_parameters are both there; which is meant?");
    object = name;
  }
  ReadNumber(config, object, "rope_theta", &ModelFacts::rope_theta, theta);
  ReadNumber(config, object, "partial_rotary_factor", &ModelFacts::rope_fraction, 1);
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

}  // namespace ft
