// The Vision Transformer (A. Dosovitskiy et al., 2020) as a classifier of pictures, as Hugging Face names and
// stores it.
#include "models/base/parts.h"

namespace ft::models::vit {
namespace {

using mlir::Value;
using Facts = ::ft::ModelFacts;

int64_t side(const ModelConfig &config) { return config.image_size / config.patch_size; }

// A convolution whose steps are as wide as its kernel is a product on the pixels of each patch.
Value buildPatches(GraphBuilder &graph, const ModelConfig &config) {
  int64_t batch = config.batch, channels = config.num_channels, patch = config.patch_size, n = side(config);
  Value pixels = graph.input("pixels", {batch, channels, config.image_size, config.image_size},
                             graph.types().getF32Type());
  Value x = graph.reshape(pixels, {batch, channels, n, patch, n, patch});
  x = graph.reshape(graph.transpose(x, {0, 2, 4, 1, 3, 5}), {batch, n * n, channels * patch * patch});
  std::string name = "vit.embeddings.patch_embeddings.projection.";
  Value weight = graph.parameter(name + "weight", {config.hidden_size, channels, patch, patch},
                                 Init::normal(kInitDeviation));
  Value bias = graph.parameter(name + "bias", {config.hidden_size}, Init::constant(0));
  return graph.matmulTransposed(x, graph.reshape(weight, {config.hidden_size, channels * patch * patch}),
                                bias);
}

// A learned vector stands before the patches: what the classifier sees in the end.
Value buildEmbedding(GraphBuilder &graph, const ModelConfig &config) {
  int64_t hidden = config.hidden_size, positions = config.max_positions;
  Value first = graph.parameter("vit.embeddings.cls_token", {1, 1, hidden}, Init::normal(kInitDeviation));
  Value table = graph.parameter("vit.embeddings.position_embeddings", {1, positions, hidden},
                                Init::normal(kInitDeviation));
  Value x = graph.concat({graph.broadcast(first, {config.batch, 1, hidden}), buildPatches(graph, config)}, 1);
  x = graph.add(x, graph.reshape(table, {positions, hidden}));
  return graph.named("x", graph.dropout(x, config.embedding_dropout));
}

Value buildBlock(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix, Value x) {
  int64_t hidden = config.hidden_size;
  Value h = graph.ownLayerNorm(prefix + "layernorm_before", x, config.norm_eps);
  std::string attention = prefix + "attention.attention.";
  Value q = graph.named("q", graph.linear(attention + "query", h, hidden, config.qkv_bias));
  Value k = graph.named("k", graph.linear(attention + "key", h, hidden, config.qkv_bias));
  Value v = graph.named("v", graph.linear(attention + "value", h, hidden, config.qkv_bias));
  Value mixed = graph.attention(q, k, v, config.num_heads, config.num_heads, attentionOf(graph, config, -1));
  Value attended = graph.linear(prefix + "attention.output.dense", mixed, hidden, true);
  x = addResidual(graph, config, x, attended);
  h = graph.ownLayerNorm(prefix + "layernorm_after", x, config.norm_eps);
  h = activate(graph, config, graph.linear(prefix + "intermediate.dense", h, config.intermediate_size, true));
  return addResidual(graph, config, x, graph.linear(prefix + "output.dense", h, hidden, true));
}

mlir::OwningOpRef<mlir::ModuleOp> build(mlir::MLIRContext &context, const ModelName &name,
                                        const ModelConfig &config) {
  GraphBuilder graph(context, name, "vit.", config);
  graph.enterLayer("vit.embeddings");
  Value x = buildEmbedding(graph, config);
  for (int64_t i = 0; i < config.num_layers; ++i) {
    std::string layer = "vit.encoder.layer." + std::to_string(i);
    graph.enterLayer(layer);
    x = buildBlock(graph, config, layer + ".", x);
  }
  graph.enterLayer("classifier");
  // A norm sees one position at a time: only that of the first is wanted.
  Value first = graph.reshape(graph.slice(x, {0, 0, 0}, {config.batch, 1, config.hidden_size}),
                              {config.batch, config.hidden_size});
  Value normed = graph.ownLayerNorm("vit.layernorm", first, config.norm_eps);
  Value logits = graph.linear("classifier", normed, config.num_labels, true);
  return finishClassifier(graph, logits, graph.classLabels());
}

std::string check(const ModelConfig &config) {
  if (config.patch_size == 0 || config.image_size % config.patch_size != 0)
    return "an image of " + std::to_string(config.image_size) + " pixels is not divisible by patches of " +
           std::to_string(config.patch_size);
  return checkActivation(config);
}

void complete(ModelConfig &config) { config.max_positions = side(config) * side(config) + 1; }

ModelConfig vit(int64_t hidden, int64_t layers, int64_t heads) {
  ModelConfig config = configOf("vit", {hidden, layers, heads, heads, 4 * hidden, 0, 0});
  config.positions = "learned";
  config.norm = "layer_norm";
  config.norm_eps = 1e-12;
  config.activation = "gelu";
  config.qkv_bias = config.attention_output_bias = config.mlp_bias = true;
  config.causal = false;
  config.num_labels = 1000;
  config.image_size = 224;
  config.patch_size = 16;
  config.num_channels = 3;
  return config;
}

} // namespace

void addModels(std::vector<ModelSpec> &models) {
  ModelConfig debug = vit(64, 2, 4);
  debug.batch = 4;
  debug.num_labels = 10;
  debug.image_size = 32;
  debug.patch_size = 8;
  models.push_back(
      {.name = "vit",
       .summary = "Vision Transformer: a classifier of pictures, safetensors with pixels and labels",
       .presets = {{"debug", "vit-debug", {}, debug},
                   {"base", "vit-base", {"86m"}, vit(768, 12, 12)},
                   {"large", "vit-large", {"304m"}, vit(1024, 24, 16)}},
       .options = {"layers", "hidden", "heads", "ffn", "labels", "image", "patch", "dropout"},
       .modelTypes = {"vit"},
       .honours = withCommonFacts({&Facts::qkv_bias, &Facts::num_labels, &Facts::image_size,
                                   &Facts::patch_size, &Facts::num_channels}),
       .complete = complete,
       .check = check,
       .build = build});
}

} // namespace ft::models::vit
