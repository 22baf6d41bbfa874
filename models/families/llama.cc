// Llama (H. Touvron et al., 2023; Llama 3, 2024) and models of its shape such as Qwen2, as Hugging Face names
// and stores them.
#include <algorithm>

#include "models/base/decoder.h"

namespace ft::models::llama {
namespace {

mlir::OwningOpRef<mlir::ModuleOp> build(mlir::MLIRContext &context, const std::string &preset,
                                        const ModelConfig &config) {
  return buildDecoder(context, "llama", preset, config);
}

// Sequences of a preset without --seq, at most: a long context is asked for, not stumbled into.
constexpr int64_t kDefaultSeq = 2048;

ModelConfig dimensions(int64_t hidden, int64_t layers, int64_t heads, int64_t kvHeads, int64_t ffn,
                       int64_t vocab, int64_t context) {
  return {.hidden = hidden,
          .layers = layers,
          .heads = heads,
          .kvHeads = kvHeads,
          .ffn = ffn,
          .vocab = vocab,
          .context = context,
          .batch = 1,
          .seq = std::min(context, kDefaultSeq),
          .modelType = "llama"};
}

ModelConfig llama3(ModelConfig config) {
  config.ropeBase = 5e5;
  return config;
}

ModelConfig qwen2(ModelConfig config) {
  config.ropeBase = 1e6;
  config.normEps = 1e-6;
  config.modelType = "qwen2";
  config.tiedHead = true;
  config.qkvBias = true;
  return config;
}

} // namespace

void addModels(std::vector<ModelSpec> &models) {
  ModelConfig debug = dimensions(64, 2, 4, 2, 176, 256, 64);
  debug.batch = 4;
  models.push_back(
      {.name = "llama",
       .summary = "Llama: RMSNorm, rotary positions, grouped queries, SwiGLU; Qwen2 has its shape",
       .presets =
           {{"debug", "llama-debug", {}, debug},
            {"150m", "llama-150m", {}, dimensions(1024, 12, 16, 16, 2688, 32000, 2048)},
            {"1b", "llama-1b", {}, dimensions(2048, 22, 32, 4, 5632, 32000, 2048)},
            {"llama2-7b", "llama2-7b", {"7b"}, dimensions(4096, 32, 32, 32, 11008, 32000, 4096)},
            {"llama2-13b", "llama2-13b", {"13b"}, dimensions(5120, 40, 40, 40, 13824, 32000, 4096)},
            {"llama3-8b", "llama3-8b", {"8b"}, llama3(dimensions(4096, 32, 32, 8, 14336, 128256, 8192))},
            {"llama3-70b", "llama3-70b", {"70b"}, llama3(dimensions(8192, 80, 64, 8, 28672, 128256, 8192))},
            {"qwen2-0.5b", "qwen2-0.5b", {"0.5b"}, qwen2(dimensions(896, 24, 14, 2, 4864, 151936, 131072))},
            {"qwen2.5-1.5b", "qwen2.5-1.5b", {}, qwen2(dimensions(1536, 28, 12, 2, 8960, 151936, 131072))}},
       .options = decoderOptions(),
       .check = checkDecoder,
       .build = build});
}

} // namespace ft::models::llama
