// GPT-2 (A. Radford et al., 2019), as Hugging Face names and stores it.
#include <cmath>

#include "models/base/parts.h"

namespace ft::models::gpt2 {
namespace {

using mlir::Value;
using Facts = ::ft::ModelFacts;

constexpr char kEmbedding[] = "transformer.wte.weight";
constexpr char kHead[] = "lm_head.weight";

// Conv1D of the original: weight [in, out] and bias.
Value conv1d(GraphBuilder &graph, const std::string &name, Value x, int64_t in, int64_t out,
             double deviation) {
  Value weight = graph.parameter(name + ".weight", {in, out}, Init::normal(deviation));
  Value bias = graph.parameter(name + ".bias", {out}, Init::constant(0));
  return graph.matmul(x, weight, bias);
}

Value buildEmbedding(GraphBuilder &graph, const ModelConfig &config) {
  Value wte = tokenTable(graph, config, kEmbedding, kHead);
  Value x = graph.embedding(graph.tokens(), wte);
  Value wpe = graph.parameter("transformer.wpe.weight", {config.max_positions, config.hidden_size},
                              Init::normal(kInitDeviation));
  x = graph.add(x, graph.embedding(graph.positions(config.packed), wpe));
  return graph.named("x", graph.dropout(x, config.embedding_dropout));
}

Value buildBlock(GraphBuilder &graph, const ModelConfig &config, int64_t layer, const std::string &prefix,
                 Value x) {
  int64_t hidden = config.hidden_size;
  double residualDeviation = kInitDeviation / std::sqrt(2.0 * double(config.num_layers));
  Value h = graph.ownLayerNorm(prefix + "ln_1", x, config.norm_eps);
  Value fused = conv1d(graph, prefix + "attn.c_attn", h, hidden, 3 * hidden, kInitDeviation);
  auto qkv = graph.split(fused, 3);
  graph.named("qkv", qkv[0]);
  Value mixed = graph.attention(qkv[0], qkv[1], qkv[2], config.num_heads, config.num_heads,
                                attentionOf(graph, config, layer));
  Value attended = conv1d(graph, prefix + "attn.c_proj", mixed, hidden, hidden, residualDeviation);
  x = addResidual(graph, config, x, attended);
  h = graph.ownLayerNorm(prefix + "ln_2", x, config.norm_eps);
  h = conv1d(graph, prefix + "mlp.c_fc", h, hidden, config.intermediate_size, kInitDeviation);
  h = activate(graph, config, h);
  h = conv1d(graph, prefix + "mlp.c_proj", h, config.intermediate_size, hidden, residualDeviation);
  return addResidual(graph, config, x, h);
}

mlir::OwningOpRef<mlir::ModuleOp> build(mlir::MLIRContext &context, const ModelName &name,
                                        const ModelConfig &config) {
  GraphBuilder graph(context, name, "transformer.", config);
  graph.enterLayer("transformer.embed");
  Value x = buildEmbedding(graph, config);
  for (int64_t i = 0; i < config.num_layers; ++i) {
    std::string layer = "transformer.h." + std::to_string(i);
    graph.enterLayer(layer);
    x = buildBlock(graph, config, i, layer + ".", x);
  }
  graph.enterLayer("transformer.head");
  x = graph.ownLayerNorm("transformer.ln_f", x, config.norm_eps);
  Value head = headWeight(graph, config, kEmbedding, kHead);
  Value logits = graph.named("logits", graph.matmulTransposed(x, head, Value()));
  return graph.finish(graph.named("loss", graph.crossEntropy(logits, graph.targets())));
}

ModelConfig withFacts(ModelConfig config) {
  config.positions = "learned";
  config.norm = "layer_norm";
  config.activation = "gelu_tanh";
  config.qkv_bias = config.attention_output_bias = config.mlp_bias = true;
  config.tied_head = true;
  return config;
}

Preset preset(const char *name, int64_t hidden, int64_t layers, int64_t heads) {
  return {name,
          std::string("gpt2-") + name,
          {},
          withFacts(configOf("gpt2", {hidden, layers, heads, heads, 4 * hidden, 50257, 1024}))};
}

} // namespace

void addModels(std::vector<ModelSpec> &models) {
  ModelConfig debug = withFacts(debugConfigOf("gpt2", {64, 2, 4, 4, 256, 256, 64}));
  models.push_back(
      {.name = "gpt2",
       .summary = "GPT-2: learned positions, LayerNorm, fused qkv, tied head",
       .presets = {{"debug", "gpt2-debug", {}, debug},
                   preset("124m", 768, 12, 12),
                   preset("355m", 1024, 24, 16),
                   preset("774m", 1280, 36, 20),
                   preset("1.5b", 1600, 48, 25)},
       .options = {"seq", "layers", "hidden", "heads", "ffn", "vocab", "context", "dropout", "packed"},
       .modelTypes = {"gpt2"},
       .honours =
           withCommonFacts({&Facts::tied_head, &Facts::attention_scale, &Facts::attention_scale_by_layer}),
       .attentionDropout = true,
       .check = checkActivation,
       .build = build});
}

} // namespace ft::models::gpt2
