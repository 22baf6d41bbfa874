#include "models/base/apply_overrides.h"

#include <algorithm>

namespace ft::models {
namespace {

// Largest extent: the product of any three stays far inside 64 bits.
constexpr int64_t kMaxExtent = int64_t{1} << 20;
constexpr int64_t kMaxLayers = 4096;

std::string text(const std::string &option, int64_t value) {
  return "--" + option + "=" + std::to_string(value);
}

template <typename T> void set(T &field, const std::optional<T> &value) {
  if (value)
    field = *value;
}

// kv heads, seq: follow what they depend on unless they are given.
void applyDependent(const Overrides &overrides, const ModelConfig &preset, ModelConfig &config) {
  if (overrides.kvHeads)
    config.kvHeads = *overrides.kvHeads;
  else if (preset.kvHeads == preset.heads)
    config.kvHeads = config.heads;
  config.seq = overrides.seq ? *overrides.seq : std::min(preset.seq, config.context);
}

std::string checkRanges(const ModelConfig &config) {
  struct Option {
    const char *name;
    int64_t value;
    int64_t max;
  };
  const Option options[] = {{"batch", config.batch, kMaxExtent},    {"seq", config.seq, kMaxExtent},
                            {"layers", config.layers, kMaxLayers},  {"hidden", config.hidden, kMaxExtent},
                            {"heads", config.heads, kMaxExtent},    {"kv-heads", config.kvHeads, kMaxExtent},
                            {"ffn", config.ffn, kMaxExtent},        {"vocab", config.vocab, kMaxExtent},
                            {"context", config.context, kMaxExtent}};
  for (const Option &option : options)
    if (option.value < 1 || option.value > option.max)
      return text(option.name, option.value) + " is out of range; expected 1 to " +
             std::to_string(option.max);
  return "";
}

std::string checkDropout(const ModelConfig &config) {
  if (config.dropout >= 0 && config.dropout < 1)
    return "";
  return "--dropout must be a probability, 0 or more and below 1";
}

std::string checkLatent(const ModelSpec &spec, const Overrides &overrides, const ModelConfig &config) {
  if (!spec.latent) {
    if (overrides.latentBits || overrides.beta || overrides.kappa)
      return "--latent-bits, --beta and --kappa are options of free_transformer only";
    return "";
  }
  if (config.latentBits < 1)
    return text("latent-bits", config.latentBits) + " is out of range; expected at least 1";
  if (!(config.beta >= 0 && config.beta < 1e30))
    return "--beta must be a number, 0 or more";
  if (!(config.kappa >= 0 && config.kappa < 1e30))
    return "--kappa must be a number of nats, 0 or more";
  return "";
}

std::string checkFit(const ModelSpec &spec, const ModelConfig &config) {
  if (config.hidden % config.heads != 0)
    return text("hidden", config.hidden) + " is not divisible by " + text("heads", config.heads);
  if (!spec.groupedQueries && config.kvHeads != config.heads)
    return text("kv-heads", config.kvHeads) + " differs from " + text("heads", config.heads) + "; " +
           spec.name + " has no grouped queries";
  if (config.heads % config.kvHeads != 0)
    return text("heads", config.heads) + " is not divisible by " + text("kv-heads", config.kvHeads);
  if (config.seq > config.context)
    return text("seq", config.seq) + " is longer than " + text("context", config.context);
  return "";
}

} // namespace

std::string applyOverrides(const ModelSpec &spec, const Overrides &overrides, ModelConfig &config) {
  const ModelConfig preset = config;
  set(config.batch, overrides.batch);
  set(config.layers, overrides.layers);
  set(config.hidden, overrides.hidden);
  set(config.heads, overrides.heads);
  set(config.ffn, overrides.ffn);
  set(config.vocab, overrides.vocab);
  set(config.context, overrides.context);
  set(config.latentBits, overrides.latentBits);
  set(config.beta, overrides.beta);
  set(config.kappa, overrides.kappa);
  set(config.dropout, overrides.dropout);
  applyDependent(overrides, preset, config);
  for (const std::string &error :
       {checkRanges(config), checkDropout(config), checkLatent(spec, overrides, config)})
    if (!error.empty())
      return error;
  if (std::string error = checkFit(spec, config); !error.empty())
    return error;
  return spec.check(config);
}

} // namespace ft::models
