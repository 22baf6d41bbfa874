// The Free Transformer (F. Fleuret, 2025), and its decoder without the latent variable to measure it against.
#include <numbers>

#include "models/base/decoder.h"

namespace ft::models::free_transformer {
namespace {

using mlir::Value;

struct Latent {
  Value r;  // [batch, seq, hidden]: what the decoder is told
  Value kl; // scalar, nats beyond kappa per position
};

// One non-causal block whose queries are a learned vector, the same at all positions; the bits are read off
// its output.
Latent buildEncoder(GraphBuilder &graph, const ModelConfig &config, Value x) {
  graph.enterLayer("model.encoder");
  int64_t hidden = config.hidden_size, bits = config.latent_bits;
  Value zeta = graph.parameter("model.encoder.zeta", {hidden}, Init::normal(kInitDeviation));
  Value queries = graph.named("queries", graph.broadcast(zeta, {config.batch, config.seq, hidden}));
  Value y =
      buildDecoderBlock(graph, config, "model.encoder.block.", {.q = queries, .kv = x, .causal = false});
  Value normWeight = graph.parameter("model.encoder.norm.weight", {hidden}, Init::constant(1));
  Value readout =
      graph.parameter("model.encoder.readout.weight", {bits, hidden}, Init::normal(kInitDeviation));
  Value logits = graph.matmulTransposed(graph.rmsNorm(y, normWeight, config.norm_eps), readout, Value());
  graph.named("bit_logits", logits);

  Value index = graph.named("code", graph.sampleBits(logits, graph.rng(), kSampleStream));
  Value table = graph.parameter("model.post_sampler.weight", {int64_t{1} << bits, hidden},
                                Init::normal(kInitDeviation));
  Value r = graph.named("r", graph.binaryMapper(logits, index, table));
  return {r, graph.named("kl", graph.bitsKl(logits, config.kappa))};
}

mlir::OwningOpRef<mlir::ModuleOp> buildFree(mlir::MLIRContext &context, const ModelName &name,
                                            const ModelConfig &config) {
  GraphBuilder graph(context, name, "model.", config);
  Value x = buildTokenEmbedding(graph, config);
  int64_t middle = config.num_layers / 2;
  for (int64_t i = 0; i < middle; ++i)
    x = buildDecoderLayer(graph, config, i, x, x);

  Latent latent = buildEncoder(graph, config, x);
  graph.enterLayer("model.layers." + std::to_string(middle));
  Value told = graph.named("told", graph.add(x, latent.r));
  x = buildDecoderLayer(graph, config, middle, x, told);
  for (int64_t i = middle + 1; i < config.num_layers; ++i)
    x = buildDecoderLayer(graph, config, i, x, x);

  Value crossEntropy = buildHeadLoss(graph, config, x);
  graph.named("cross_entropy", crossEntropy);
  Value loss = graph.add(crossEntropy, graph.scale(latent.kl, config.beta));
  return graph.finish(graph.named("loss", loss));
}

std::string checkFree(const ModelConfig &config) {
  if (config.num_layers % 2 != 0)
    return "--layers=" + std::to_string(config.num_layers) +
           " is odd; the latent variable enters after half of the layers";
  return checkDecoder(config);
}

// Without the latent variable it is a Llama.
ModelConfig baseline(const Sizes &sizes) {
  ModelConfig config = decoderOf(debugConfigOf("llama", sizes));
  config.tied_head = true;
  return config;
}

ModelConfig withLatent(ModelConfig config, int64_t bits) {
  config.model_type = "free_transformer";
  config.latent_bits = bits;
  config.kappa = std::numbers::ln2 / 2; // half a bit
  return config;
}

constexpr Sizes kDebug = {64, 4, 4, 4, 128, 256, 64}, kTest = {128, 4, 4, 4, 512, 1000, 128};

} // namespace

void addModels(std::vector<ModelSpec> &models) {
  models.push_back(
      {.name = "free_transformer",
       .summary =
           "The Free Transformer: a decoder told by latent bits that an encoder reads off the whole text",
       .presets = {{"debug", "free-transformer-debug", {}, withLatent(baseline(kDebug), 6)},
                   {"test", "free-transformer-test", {}, withLatent(baseline(kTest), 8)}},
       .options = decoderOptions({"latent-bits", "beta", "kappa"}),
       .modelTypes = {"free_transformer"},
       .honours = decoderFacts({&::ft::ModelFacts::latent_bits}),
       .check = checkFree,
       .build = buildFree});
  models.push_back({.name = "baseline",
                    .summary = "The Free Transformer's decoder without the latent variable",
                    .presets = {{"debug", "baseline-debug", {}, baseline(kDebug)},
                                {"test", "baseline-test", {}, baseline(kTest)}},
                    .options = decoderOptions({"packed"}),
                    .modelTypes = {},
                    .honours = decoderFacts(),
                    .check = checkDecoder,
                    .build = buildDecoder});
}

} // namespace ft::models::free_transformer
