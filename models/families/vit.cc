// The Vision Transformer (A. Dosovitskiy et al., 2020) as a classifier of pictures, as Hugging Face names and
// stores it.
#include "models/base/common_facts.h"
#include "models/base/graph_builder.h"
#include "models/base/model_spec.h"

namespace ft::models::vit {
namespace {

using mlir::Value;

int64_t side(const ModelConfig &config) { return config.image / config.patch; }

int64_t positions(const ModelConfig &config) { return side(config) * side(config) + 1; }

// A convolution whose steps are as wide as its kernel is a product on the pixels of each patch.
Value buildPatches(GraphBuilder &graph, const ModelConfig &config) {
  int64_t batch = config.batch, channels = config.channels, patch = config.patch, n = side(config);
  Value pixels =
      graph.input("pixels", {batch, channels, config.image, config.image}, graph.types().getF32Type());
  Value x = graph.reshape(pixels, {batch, channels, n, patch, n, patch});
  x = graph.reshape(graph.transpose(x, {0, 2, 4, 1, 3, 5}), {batch, n * n, channels * patch * patch});
  std::string name = "vit.embeddings.patch_embeddings.projection.";
  Value weight =
      graph.parameter(name + "weight", {config.hidden, channels, patch, patch}, Init::normal(kInitDeviation));
  Value bias = graph.parameter(name + "bias", {config.hidden}, Init::constant(0));
  return graph.matmulTransposed(x, graph.reshape(weight, {config.hidden, channels * patch * patch}), bias);
}

// A learned vector stands before the patches: what the classifier sees in the end.
Value buildEmbedding(GraphBuilder &graph, const ModelConfig &config) {
  int64_t hidden = config.hidden;
  Value first = graph.parameter("vit.embeddings.cls_token", {1, 1, hidden}, Init::normal(kInitDeviation));
  Value table = graph.parameter("vit.embeddings.position_embeddings", {1, positions(config), hidden},
                                Init::normal(kInitDeviation));
  Value x = graph.concat({graph.broadcast(first, {config.batch, 1, hidden}), buildPatches(graph, config)}, 1);
  return graph.named("x", graph.dropout(graph.add(x, graph.reshape(table, {positions(config), hidden}))));
}

Value buildBlock(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix, Value x) {
  int64_t hidden = config.hidden;
  Value h = graph.ownLayerNorm(prefix + "layernorm_before", x, config.normEps);
  std::string attention = prefix + "attention.attention.";
  Value q = graph.named("q", graph.linear(attention + "query", h, hidden, true));
  Value k = graph.named("k", graph.linear(attention + "key", h, hidden, true));
  Value v = graph.named("v", graph.linear(attention + "value", h, hidden, true));
  Value mixed = graph.attention(q, k, v, config.heads, config.heads, {.causal = false});
  Value attended = graph.linear(prefix + "attention.output.dense", mixed, hidden, true);
  x = graph.named("x", graph.add(x, graph.dropout(attended)));
  h = graph.ownLayerNorm(prefix + "layernorm_after", x, config.normEps);
  h = graph.gelu(graph.linear(prefix + "intermediate.dense", h, config.ffn, true), "none");
  return graph.named("x",
                     graph.add(x, graph.dropout(graph.linear(prefix + "output.dense", h, hidden, true))));
}

::ft::ModelFacts factsOf(const ModelConfig &config) {
  ::ft::ModelFacts facts = commonFacts(config);
  facts.model_type = "vit";
  facts.max_positions = positions(config);
  facts.positions = "learned";
  facts.norm = "layer_norm";
  facts.activation = "gelu";
  facts.qkv_bias = facts.attention_output_bias = facts.mlp_bias = true;
  facts.causal = false;
  facts.num_labels = config.labels;
  facts.image_size = config.image;
  facts.patch_size = config.patch;
  facts.num_channels = config.channels;
  return facts;
}

mlir::OwningOpRef<mlir::ModuleOp> build(mlir::MLIRContext &context, const std::string &preset,
                                        const ModelConfig &config) {
  GraphBuilder graph(context, {"vit", preset, "vit.", factsOf(config)}, config);
  graph.enterLayer("vit.embeddings");
  Value x = buildEmbedding(graph, config);
  for (int64_t i = 0; i < config.layers; ++i) {
    std::string layer = "vit.encoder.layer." + std::to_string(i);
    graph.enterLayer(layer);
    x = buildBlock(graph, config, layer + ".", x);
  }
  graph.enterLayer("classifier");
  // A norm sees one position at a time: only that of the first is wanted.
  Value first = graph.reshape(graph.slice(x, {0, 0, 0}, {config.batch, 1, config.hidden}),
                              {config.batch, config.hidden});
  Value normed = graph.ownLayerNorm("vit.layernorm", first, config.normEps);
  Value logits = graph.named("logits", graph.linear("classifier", normed, config.labels, true));
  Value labels = graph.classLabels();
  graph.output("accuracy", graph.accuracy(logits, labels));
  return graph.finish(graph.named("loss", graph.crossEntropy(logits, labels)));
}

std::string check(const ModelConfig &config) {
  if (config.image % config.patch == 0)
    return "";
  return "--image=" + std::to_string(config.image) +
         " is not divisible by --patch=" + std::to_string(config.patch);
}

ModelConfig dimensions(int64_t hidden, int64_t layers, int64_t heads) {
  return {.hidden = hidden,
          .layers = layers,
          .heads = heads,
          .kvHeads = heads,
          .ffn = 4 * hidden,
          .batch = 1,
          .normEps = 1e-12,
          .labels = 1000,
          .image = 224,
          .patch = 16,
          .channels = 3};
}

} // namespace

void addModels(std::vector<ModelSpec> &models) {
  ModelConfig debug = dimensions(64, 2, 4);
  debug.batch = 4;
  debug.labels = 10;
  debug.image = 32;
  debug.patch = 8;
  models.push_back(
      {.name = "vit",
       .summary = "Vision Transformer: a classifier of pictures, safetensors with pixels and labels",
       .presets = {{"debug", "vit-debug", {}, debug},
                   {"base", "vit-base", {"86m"}, dimensions(768, 12, 12)},
                   {"large", "vit-large", {"304m"}, dimensions(1024, 24, 16)}},
       .options = {"layers", "hidden", "heads", "ffn", "labels", "image", "patch", "dropout"},
       .check = check,
       .build = build});
}

} // namespace ft::models::vit
