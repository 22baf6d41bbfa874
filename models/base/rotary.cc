#include "models/base/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace ft::models {
namespace {

using mlir::Value;
using Facts = ::ft::ModelFacts;

constexpr const char *kTypes[] = {"default", "linear", "dynamic", "llama3", "yarn", "longrope"};

// Elements of a head that are rotated, before they are made even.
int64_t dimensions(const ModelConfig &config) {
  return static_cast<int64_t>(static_cast<double>(config.head_size) * config.rope_fraction);
}

// Transformers rounds up what is no even number, and computes with the number as it is.
int64_t pairs(const ModelConfig &config) { return (dimensions(config) + 1) / 2; }

std::vector<double> plain(double base, int64_t dims) {
  std::vector<double> frequencies((dims + 1) / 2);
  for (int64_t i = 0; i < static_cast<int64_t>(frequencies.size()); ++i)
    frequencies[i] = std::pow(base, -2.0 * double(i) / double(dims));
  return frequencies;
}

// NTK-aware: the base grows with what sequences are longer than those of training.
double dynamicBase(const ModelConfig &config, double base, int64_t dims) {
  double longest = double(std::max(config.seq, config.max_positions)) / double(config.max_positions);
  double stretch = config.rope_factor * longest - (config.rope_factor - 1);
  return base * std::pow(stretch, double(dims) / double(dims - 2));
}

// Waves that are longer than the context of training are stretched, short ones kept, those between blended.
void scaleLlama3(const ModelConfig &config, std::vector<double> &frequencies) {
  double context = double(config.rope_original_positions), low = config.rope_low_freq_factor,
         high = config.rope_high_freq_factor;
  for (double &frequency : frequencies) {
    double turns = context * frequency / (2 * std::numbers::pi);
    double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    frequency *= kept + (1 - kept) / config.rope_factor;
  }
}

// YaRN (B. Peng et al., 2023), equations 19 to 23: a ramp over the index of the frequency, between those that
// turn beta_fast and beta_slow times in the context of training.
void scaleYarn(const ModelConfig &config, double base, int64_t dims, Rotary &rotary) {
  auto index = [&](double turns) {
    double waves = double(config.rope_original_positions) / (turns * 2 * std::numbers::pi);
    return double(dims) * std::log(waves) / (2 * std::log(base));
  };
  double first = std::max(std::floor(index(config.rope_beta_fast)), 0.0);
  double last = std::min(std::ceil(index(config.rope_beta_slow)), double(dims - 1));
  if (first == last)
    last += 0.001;
  for (auto [i, frequency] : llvm::enumerate(rotary.frequencies)) {
    double stretched = std::clamp((double(i) - first) / (last - first), 0.0, 1.0);
    frequency *= (1 - stretched) + stretched / config.rope_factor;
  }
  if (config.rope_attention_factor != 0)
    rotary.scale = config.rope_attention_factor;
  else if (config.rope_factor > 1)
    rotary.scale = 0.1 * std::log(config.rope_factor) + 1;
}

// LongRoPE (Y. Ding et al., 2024): a table of factors for each of two lengths.
void scaleLongrope(const ModelConfig &config, Rotary &rotary) {
  int64_t original = config.rope_original_positions;
  const auto &factors = config.seq > original ? config.rope_long_factors : config.rope_short_factors;
  for (auto [frequency, factor] : llvm::zip_equal(rotary.frequencies, factors))
    frequency /= factor;
  if (config.rope_attention_factor != 0)
    rotary.scale = config.rope_attention_factor;
  else if (config.rope_factor > 1)
    rotary.scale = std::sqrt(1 + std::log(config.rope_factor) / std::log(double(original)));
}

std::string checkLongrope(const ModelConfig &config) {
  for (const auto *factors : {&config.rope_short_factors, &config.rope_long_factors}) {
    if (static_cast<int64_t>(factors->size()) != pairs(config))
      return llvm::formatv("rope has {0} factors for {1} pairs of elements of a head", factors->size(),
                           pairs(config));
    if (llvm::any_of(*factors, [](double factor) { return !(factor > 0); }))
      return "rope has a factor that is not positive";
  }
  return "";
}

std::string checkScaling(const ModelConfig &config) {
  const std::string &type = config.rope_type;
  if (!llvm::is_contained(kTypes, type))
    return llvm::formatv("rope_type is \"{0}\", which is not known; known are {1}", type,
                         llvm::make_range(std::begin(kTypes), std::end(kTypes)));
  if (type != "default" && !(config.rope_factor > 0))
    return llvm::formatv("rope's factor is {0}; expected a positive number", config.rope_factor);
  bool needsOriginal = type == "llama3" || type == "yarn" || type == "longrope";
  if (needsOriginal && config.rope_original_positions < 2)
    return llvm::formatv("rope of type {0} needs original_max_position_embeddings", type);
  if (type == "llama3" && !(config.rope_high_freq_factor > config.rope_low_freq_factor))
    return "rope's high_freq_factor is not above its low_freq_factor";
  if (type == "yarn" && !(config.rope_beta_fast > 0 && config.rope_beta_slow > 0))
    return "rope's beta_fast and beta_slow are not positive";
  if (type == "dynamic" && dimensions(config) < 3)
    return "rope of type dynamic needs three rotated elements of each head at least";
  return type == "longrope" ? checkLongrope(config) : "";
}

} // namespace

Rotary rotaryOf(const ModelConfig &config, bool slides) {
  int64_t dims = dimensions(config);
  // Layers with a base of their own see a window only, which no scaling is for.
  if (slides && config.rope_theta_sliding > 0)
    return {plain(config.rope_theta_sliding, dims)};
  double base = config.rope_theta;
  const std::string &type = config.rope_type;
  if (type == "dynamic")
    base = dynamicBase(config, base, dims);
  Rotary rotary{plain(base, dims)};
  if (type == "linear")
    for (double &frequency : rotary.frequencies)
      frequency /= config.rope_factor;
  else if (type == "llama3")
    scaleLlama3(config, rotary.frequencies);
  else if (type == "yarn")
    scaleYarn(config, base, dims, rotary);
  else if (type == "longrope")
    scaleLongrope(config, rotary);
  return rotary;
}

Value rotate(GraphBuilder &graph, const ModelConfig &config, Value x, int64_t heads, bool slides) {
  int64_t size = config.head_size, dims = 2 * pairs(config), batch = config.batch, seq = config.seq;
  bool own = slides && config.rope_theta_sliding > 0;
  bool whole = dims == size;
  if (whole && dimensions(config) == size && (own || config.rope_type == "default"))
    return graph.rope(x, heads, own ? config.rope_theta_sliding : config.rope_theta);
  Rotary rotary = rotaryOf(config, slides);
  auto [cosine, sine] = graph.rotaryTable(rotary.frequencies, rotary.scale);
  if (whole)
    return graph.rotate(x, cosine, sine, heads);
  // The rest of each head passes by.
  Value apart = graph.reshape(x, {batch, seq, heads, size});
  Value turned = graph.slice(apart, {0, 0, 0, 0}, {batch, seq, heads, dims});
  Value kept = graph.slice(apart, {0, 0, 0, dims}, {batch, seq, heads, size - dims});
  turned = graph.rotate(graph.reshape(turned, {batch, seq, heads * dims}), cosine, sine, heads);
  apart = graph.concat({graph.reshape(turned, {batch, seq, heads, dims}), kept}, 3);
  return graph.reshape(apart, {batch, seq, heads * size});
}

std::string checkRotary(const ModelConfig &config) {
  if (!(config.rope_fraction > 0 && config.rope_fraction <= 1))
    return llvm::formatv("rotary positions of a part of {0} of each head are none", config.rope_fraction);
  if (pairs(config) == 0 || 2 * pairs(config) > config.head_size)
    return llvm::formatv(
        "{0} of the {1} elements of each head (hidden is {2}, heads are {3}) are rotated, but "
        "rotary positions come in pairs",
        dimensions(config), config.head_size, config.hidden_size, config.num_heads);
  if (!(config.rope_theta > 0))
    return llvm::formatv("rope's theta is {0}; expected a positive number", config.rope_theta);
  return checkScaling(config);
}

std::vector<::ft::FactMember> rotaryFacts() {
  return {&Facts::rope_theta,
          &Facts::rope_theta_sliding,
          &Facts::rope_type,
          &Facts::rope_factor,
          &Facts::rope_low_freq_factor,
          &Facts::rope_high_freq_factor,
          &Facts::rope_original_positions,
          &Facts::rope_beta_fast,
          &Facts::rope_beta_slow,
          &Facts::rope_attention_factor,
          &Facts::rope_short_factors,
          &Facts::rope_long_factors,
          &Facts::rope_fraction};
}

} // namespace ft::models
