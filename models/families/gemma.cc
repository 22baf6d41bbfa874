// Gemma (Gemma Team, 2024), Gemma 2 (2024) and the text models of Gemma 3 (2025), as Hugging Face names and
// stores them.
#include <cmath>

#include "models/base/decoder.h"

namespace ft::models::gemma {
namespace {

ModelConfig gemma2(ModelConfig config) {
  config = decoderOf(config);
  config.norm = "rms_norm_plus_one";
  config.norm_placement = "both";
  config.norm_eps = 1e-6;
  config.activation = "gelu_tanh";
  config.tied_head = true;
  config.sliding_window = 4096;
  config.sliding_layers = {0};
  config.attention_softcap = 50;
  config.logit_softcap = 30;
  return config;
}

ModelConfig gemma2(const Sizes &sizes) { return gemma2(configOf("gemma2", sizes)); }

// Positions of layers with a window have a base of their own; norms of queries and keys are in place of caps.
ModelConfig gemma3(ModelConfig config) {
  config = gemma2(config);
  config.qk_norm = "head";
  config.sliding_window = 512;
  config.sliding_layers = {0, 1, 2, 3, 4};
  config.rope_theta = 1e6;
  config.rope_theta_sliding = 1e4;
  config.attention_softcap = config.logit_softcap = 0;
  return config;
}

ModelConfig gemma3(const Sizes &sizes) { return gemma3(configOf("gemma3_text", sizes)); }

// Windows that hide something in sequences of 64, and a scale that is not the usual one.
ModelConfig debug(ModelConfig config) {
  config.sliding_window = 16;
  config.attention_scale = 1 / std::sqrt(24.0);
  return config;
}

// Scores of the largest are scaled by hidden / heads, not by the size of a head.
ModelConfig gemma2Large() {
  ModelConfig config = gemma2({4608, 46, 32, 16, 36864, 256000, 8192, 128});
  config.attention_scale = 1 / std::sqrt(144.0);
  return config;
}

// A preset says which layers slide up to the first that does not; the pattern repeats.
void complete(ModelConfig &config) {
  config.embedding_multiplier = std::sqrt(double(config.hidden_size));
  auto period = static_cast<int64_t>(config.sliding_layers.size()) + 1;
  config.sliding_layers.clear();
  for (int64_t i = 0; i < config.num_layers; ++i)
    if ((i + 1) % period != 0)
      config.sliding_layers.push_back(i);
  if (static_cast<int64_t>(config.sliding_layers.size()) == config.num_layers)
    config.sliding_layers.clear(); // which is all of them
}

ModelConfig gemma3Debug() {
  ModelConfig config = debug(gemma3(debugConfigOf("gemma3_text", {64, 3, 4, 1, 176, 256, 64, 32})));
  config.sliding_layers = {0, 1};
  return config;
}

} // namespace

void addModels(std::vector<ModelSpec> &models) {
  std::vector<std::string> options = decoderOptions({"head-size", "window", "packed"});
  models.push_back({.name = "gemma2",
                    .summary =
                        "Gemma 2: norms before and after, GeGLU, capped scores and logits, a window in "
                        "every second layer",
                    .presets = {{"debug",
                                 "gemma2-debug",
                                 {},
                                 debug(gemma2(debugConfigOf("gemma2", {64, 2, 4, 2, 176, 256, 64, 32})))},
                                {"2b", "gemma2-2b", {}, gemma2({2304, 26, 8, 4, 9216, 256000, 8192, 256})},
                                {"9b", "gemma2-9b", {}, gemma2({3584, 42, 16, 8, 14336, 256000, 8192, 256})},
                                {"27b", "gemma2-27b", {}, gemma2Large()}},
                    .options = options,
                    .modelTypes = {"gemma", "gemma2"},
                    .honours = decoderFacts(),
                    .complete = complete,
                    .check = checkDecoder,
                    .build = buildDecoder});
  models.push_back(
      {.name = "gemma3",
       .summary = "Gemma 3: norms of queries and keys, a window and another rope in five layers of six",
       .presets = {{"debug", "gemma3-debug", {}, gemma3Debug()},
                   {"270m", "gemma3-270m", {}, gemma3({640, 18, 4, 1, 2048, 262144, 32768, 256})},
                   {"1b", "gemma3-1b", {}, gemma3({1152, 26, 4, 1, 6912, 262144, 32768, 256})}},
       .options = options,
       .modelTypes = {"gemma3_text"},
       .honours = decoderFacts(),
       .complete = complete,
       .check = checkDecoder,
       .build = buildDecoder});
}

} // namespace ft::models::gemma
