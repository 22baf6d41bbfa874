// Qwen3 (A. Yang et al., 2025), as Hugging Face names and stores it.
#include "models/base/decoder.h"

namespace ft::models::qwen3 {
namespace {

ModelConfig withFacts(ModelConfig config, bool tied) {
  config = decoderOf(config);
  config.norm_eps = 1e-6;
  config.rope_theta = 1e6;
  config.qk_norm = "head";
  config.tied_head = tied;
  return config;
}

ModelConfig qwen3(int64_t hidden, int64_t layers, int64_t heads, int64_t ffn, bool tied) {
  return withFacts(configOf("qwen3", {hidden, layers, heads, 8, ffn, 151936, 40960, 128}), tied);
}

} // namespace

void addModels(std::vector<ModelSpec> &models) {
  // Heads are wider together than the residual stream, as in the small ones of the family.
  ModelConfig debug = withFacts(debugConfigOf("qwen3", {64, 2, 4, 2, 176, 256, 64, 32}), true);
  models.push_back(
      {.name = "qwen3",
       .summary = "Qwen3: a Llama with heads of their own size, and a norm of each query and key",
       .presets = {{"debug", "qwen3-debug", {}, debug},
                   {"0.6b", "qwen3-0.6b", {}, qwen3(1024, 28, 16, 3072, true)},
                   {"1.7b", "qwen3-1.7b", {}, qwen3(2048, 28, 16, 6144, true)},
                   {"4b", "qwen3-4b", {}, qwen3(2560, 36, 32, 9728, true)},
                   {"8b", "qwen3-8b", {}, qwen3(4096, 36, 32, 12288, false)}},
       .options = decoderOptions({"head-size", "packed"}),
       .modelTypes = {"qwen3"},
       .honours = decoderFacts(),
       .check = checkDecoder,
       .build = buildDecoder});
}

} // namespace ft::models::qwen3
