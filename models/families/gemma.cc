// Gemma 2 (Gemma Team, 2024) and the text models of Gemma 3 (2025), as Hugging Face names and stores them.
#include <cmath>

#include "models/base/decoder.h"

namespace ft::models::gemma {
namespace {

mlir::OwningOpRef<mlir::ModuleOp> buildGemma2(mlir::MLIRContext &context, const std::string &preset,
                                              const ModelConfig &config) {
  return buildDecoder(context, "gemma2", preset, config);
}

mlir::OwningOpRef<mlir::ModuleOp> buildGemma3(mlir::MLIRContext &context, const std::string &preset,
                                              const ModelConfig &config) {
  return buildDecoder(context, "gemma3", preset, config);
}

struct Dimensions {
  int64_t hidden, layers, heads, kvHeads, headSize, ffn;
};

// Every second layer has a window.
ModelConfig gemma2(const Dimensions &d) {
  return {.hidden = d.hidden,
          .layers = d.layers,
          .heads = d.heads,
          .kvHeads = d.kvHeads,
          .headSize = d.headSize,
          .ffn = d.ffn,
          .vocab = 256000,
          .context = 8192,
          .batch = 1,
          .seq = 2048,
          .normEps = 1e-6,
          .ropeBase = 1e4,
          .tiedHead = true,
          .modelType = "gemma2",
          .gemma = true,
          .window = 4096,
          .fullEvery = 2,
          .attentionSoftcap = 50,
          .logitSoftcap = 30};
}

// Five layers of six have one, and positions of a base of their own; norms of queries and keys in place of
// caps.
ModelConfig gemma3(const Dimensions &d) {
  ModelConfig config = gemma2(d);
  config.vocab = 262144;
  config.context = 32768;
  config.modelType = "gemma3_text";
  config.qkNorm = true;
  config.window = 512;
  config.fullEvery = 6;
  config.ropeBase = 1e6;
  config.slidingRopeBase = 1e4;
  config.attentionSoftcap = config.logitSoftcap = 0;
  return config;
}

// Windows that hide something in sequences of 64, and a scale that is not the usual one.
ModelConfig debug(ModelConfig config) {
  config.vocab = 256;
  config.context = config.seq = 64;
  config.batch = 4;
  config.window = 16;
  config.attentionScale = 1 / std::sqrt(24.0);
  return config;
}

// Scores of the largest are scaled by hidden / heads, not by the size of a head.
ModelConfig gemma2Large() {
  ModelConfig config = gemma2({4608, 46, 32, 16, 128, 36864});
  config.attentionScale = 1 / std::sqrt(144.0);
  return config;
}

} // namespace

void addModels(std::vector<ModelSpec> &models) {
  std::vector<std::string> options = decoderOptions({"head-size", "window"});
  models.push_back({.name = "gemma2",
                    .summary =
                        "Gemma 2: norms before and after, GeGLU, capped scores and logits, a window in "
                        "every second layer",
                    .presets = {{"debug", "gemma2-debug", {}, debug(gemma2({64, 2, 4, 2, 32, 176}))},
                                {"2b", "gemma2-2b", {}, gemma2({2304, 26, 8, 4, 256, 9216})},
                                {"9b", "gemma2-9b", {}, gemma2({3584, 42, 16, 8, 256, 14336})},
                                {"27b", "gemma2-27b", {}, gemma2Large()}},
                    .options = options,
                    .check = checkDecoder,
                    .build = buildGemma2});
  ModelConfig debug3 = debug(gemma3({64, 3, 4, 1, 32, 176}));
  debug3.fullEvery = 3;
  models.push_back(
      {.name = "gemma3",
       .summary = "Gemma 3: norms of queries and keys, a window and another rope in five layers of six",
       .presets = {{"debug", "gemma3-debug", {}, debug3},
                   {"270m", "gemma3-270m", {}, gemma3({640, 18, 4, 1, 256, 2048})},
                   {"1b", "gemma3-1b", {}, gemma3({1152, 26, 4, 1, 256, 6912})}},
       .options = options,
       .check = checkDecoder,
       .build = buildGemma3});
}

} // namespace ft::models::gemma
