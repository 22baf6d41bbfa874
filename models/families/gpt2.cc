// GPT-2 (A. Radford et al., 2019), as Hugging Face names and stores it.
#include <cmath>

#include "models/base/common_facts.h"
#include "models/base/graph_builder.h"
#include "models/base/model_spec.h"

namespace ft::models::gpt2 {
namespace {

using mlir::Value;

// Conv1D of the original: weight [in, out] and bias.
Value conv1d(GraphBuilder &graph, const std::string &name, Value x, int64_t in, int64_t out,
             double deviation) {
  Value weight = graph.parameter(name + ".weight", {in, out}, Init::normal(deviation));
  Value bias = graph.parameter(name + ".bias", {out}, Init::constant(0));
  return graph.matmul(x, weight, bias);
}

Value buildEmbedding(GraphBuilder &graph, const ModelConfig &config) {
  Value wte =
      graph.parameter("transformer.wte.weight", {config.vocab, config.hidden}, Init::normal(kInitDeviation));
  graph.addAlias("transformer.wte.weight", "lm_head.weight");
  Value x = graph.embedding(graph.tokens(), wte);
  Value wpe = graph.parameter("transformer.wpe.weight", {config.context, config.hidden},
                              Init::normal(kInitDeviation));
  Value positions = graph.named("positions", graph.iota(config.seq));
  return graph.named("x", graph.dropout(graph.add(x, graph.embedding(positions, wpe))));
}

Value buildBlock(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix, Value x) {
  int64_t hidden = config.hidden;
  double residualDeviation = kInitDeviation / std::sqrt(2.0 * double(config.layers));
  Value h = graph.ownLayerNorm(prefix + "ln_1", x, config.normEps);
  Value fused = conv1d(graph, prefix + "attn.c_attn", h, hidden, 3 * hidden, kInitDeviation);
  auto qkv = graph.split(fused, 3);
  graph.named("qkv", qkv[0]);
  Value mixed = graph.attention(qkv[0], qkv[1], qkv[2], config.heads, config.heads, {.dropout = true});
  Value attended = conv1d(graph, prefix + "attn.c_proj", mixed, hidden, hidden, residualDeviation);
  x = graph.named("x", graph.add(x, graph.dropout(attended)));
  h = graph.ownLayerNorm(prefix + "ln_2", x, config.normEps);
  h = graph.gelu(conv1d(graph, prefix + "mlp.c_fc", h, hidden, config.ffn, kInitDeviation), "tanh");
  h = conv1d(graph, prefix + "mlp.c_proj", h, config.ffn, hidden, residualDeviation);
  return graph.named("x", graph.add(x, graph.dropout(h)));
}

::ft::ModelFacts factsOf(const ModelConfig &config) {
  ::ft::ModelFacts facts = commonFacts(config);
  facts.model_type = "gpt2";
  facts.positions = "learned";
  facts.norm = "layer_norm";
  facts.activation = "gelu_tanh";
  facts.qkv_bias = facts.attention_output_bias = facts.mlp_bias = true;
  facts.tied_head = true;
  facts.attention_dropout = config.dropout;
  return facts;
}

mlir::OwningOpRef<mlir::ModuleOp> build(mlir::MLIRContext &context, const std::string &preset,
                                        const ModelConfig &config) {
  GraphBuilder graph(context, {"gpt2", preset, "transformer.", factsOf(config)}, config);
  graph.enterLayer("transformer.embed");
  Value x = buildEmbedding(graph, config);
  for (int64_t i = 0; i < config.layers; ++i) {
    std::string layer = "transformer.h." + std::to_string(i);
    graph.enterLayer(layer);
    x = buildBlock(graph, config, layer + ".", x);
  }
  graph.enterLayer("transformer.head");
  x = graph.ownLayerNorm("transformer.ln_f", x, config.normEps);
  Value logits =
      graph.named("logits", graph.matmulTransposed(x, graph.read("transformer.wte.weight"), Value()));
  return graph.finish(graph.named("loss", graph.crossEntropy(logits, graph.targets())));
}

Preset preset(const char *name, int64_t hidden, int64_t layers, int64_t heads) {
  ModelConfig config{.hidden = hidden,
                     .layers = layers,
                     .heads = heads,
                     .kvHeads = heads,
                     .ffn = 4 * hidden,
                     .vocab = 50257,
                     .context = 1024,
                     .batch = 1,
                     .seq = 1024,
                     .tiedHead = true};
  return {name, std::string("gpt2-") + name, {}, config};
}

} // namespace

void addModels(std::vector<ModelSpec> &models) {
  ModelConfig debug{.hidden = 64,
                    .layers = 2,
                    .heads = 4,
                    .kvHeads = 4,
                    .ffn = 256,
                    .vocab = 256,
                    .context = 64,
                    .batch = 4,
                    .seq = 64,
                    .tiedHead = true};
  models.push_back({.name = "gpt2",
                    .summary = "GPT-2: learned positions, LayerNorm, fused qkv, tied head",
                    .presets = {{"debug", "gpt2-debug", {}, debug},
                                preset("124m", 768, 12, 12),
                                preset("355m", 1024, 24, 16),
                                preset("774m", 1280, 36, 20),
                                preset("1.5b", 1600, 48, 25)},
                    .options = {"seq", "layers", "hidden", "heads", "ffn", "vocab", "context", "dropout"},
                    .check = nullptr,
                    .build = build});
}

} // namespace ft::models::gpt2
