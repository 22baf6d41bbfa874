// Qwen3 (A. Yang et al., 2025), as Hugging Face names and stores it.
#include "models/base/decoder.h"

namespace ft::models::qwen3 {
namespace {

mlir::OwningOpRef<mlir::ModuleOp> build(mlir::MLIRContext &context, const std::string &preset,
                                        const ModelConfig &config) {
  return buildDecoder(context, "qwen3", preset, config);
}

ModelConfig dimensions(int64_t hidden, int64_t layers, int64_t heads, int64_t ffn, bool tied) {
  return {.hidden = hidden,
          .layers = layers,
          .heads = heads,
          .kvHeads = 8,
          .headSize = 128,
          .ffn = ffn,
          .vocab = 151936,
          .context = 40960,
          .batch = 1,
          .seq = 2048,
          .normEps = 1e-6,
          .ropeBase = 1e6,
          .tiedHead = tied,
          .modelType = "qwen3",
          .qkNorm = true};
}

} // namespace

void addModels(std::vector<ModelSpec> &models) {
  // Heads are wider together than the residual stream, as in the small ones of the family.
  ModelConfig debug = dimensions(64, 2, 4, 176, true);
  debug.kvHeads = 2;
  debug.headSize = 32;
  debug.vocab = 256;
  debug.context = debug.seq = 64;
  debug.batch = 4;
  models.push_back(
      {.name = "qwen3",
       .summary = "Qwen3: a Llama with heads of their own size, and a norm of each query and key",
       .presets = {{"debug", "qwen3-debug", {}, debug},
                   {"0.6b", "qwen3-0.6b", {}, dimensions(1024, 28, 16, 3072, true)},
                   {"1.7b", "qwen3-1.7b", {}, dimensions(2048, 28, 16, 6144, true)},
                   {"4b", "qwen3-4b", {}, dimensions(2560, 36, 32, 9728, true)},
                   {"8b", "qwen3-8b", {}, dimensions(4096, 36, 32, 12288, false)}},
       .options = decoderOptions({"head-size"}),
       .check = checkDecoder,
       .build = build});
}

} // namespace ft::models::qwen3
