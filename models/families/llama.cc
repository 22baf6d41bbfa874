// Llama (H. Touvron et al., 2023; Llama 3, 2024) and what is one but for a few facts: Mistral, Qwen2, OLMo 2,
// SmolLM3, Granite, Phi-3, as Hugging Face names and stores them.
#include "models/base/decoder.h"

namespace ft::models::llama {
namespace {

ModelConfig llama(const Sizes &sizes) { return decoderOf(configOf("llama", sizes)); }

ModelConfig llama3(const Sizes &sizes) {
  ModelConfig config = llama(sizes);
  config.rope_theta = 5e5;
  return config;
}

ModelConfig qwen2(const Sizes &sizes) {
  ModelConfig config = decoderOf(configOf("qwen2", sizes));
  config.rope_theta = 1e6;
  config.norm_eps = 1e-6;
  config.tied_head = true;
  config.qkv_bias = true;
  return config;
}

} // namespace

void addModels(std::vector<ModelSpec> &models) {
  models.push_back(
      {.name = "llama",
       .summary = "Llama: RMSNorm, rotary positions, grouped queries, SwiGLU; Qwen2 has its shape",
       .presets =
           {{"debug", "llama-debug", {}, decoderOf(debugConfigOf("llama", {64, 2, 4, 2, 176, 256, 64}))},
            {"150m", "llama-150m", {}, llama({1024, 12, 16, 16, 2688, 32000, 2048})},
            {"1b", "llama-1b", {}, llama({2048, 22, 32, 4, 5632, 32000, 2048})},
            {"llama2-7b", "llama2-7b", {"7b"}, llama({4096, 32, 32, 32, 11008, 32000, 4096})},
            {"llama2-13b", "llama2-13b", {"13b"}, llama({5120, 40, 40, 40, 13824, 32000, 4096})},
            {"llama3-8b", "llama3-8b", {"8b"}, llama3({4096, 32, 32, 8, 14336, 128256, 8192})},
            {"llama3-70b", "llama3-70b", {"70b"}, llama3({8192, 80, 64, 8, 28672, 128256, 8192})},
            {"qwen2-0.5b", "qwen2-0.5b", {"0.5b"}, qwen2({896, 24, 14, 2, 4864, 151936, 131072})},
            {"qwen2.5-1.5b", "qwen2.5-1.5b", {}, qwen2({1536, 28, 12, 2, 8960, 151936, 131072})}},
       .options = decoderOptions({"packed"}),
       .modelTypes = {"llama", "mistral", "qwen2", "olmo2", "smollm3", "granite", "phi3"},
       .honours = decoderFacts(),
       .check = checkDecoder,
       .build = buildDecoder});
}

} // namespace ft::models::llama
