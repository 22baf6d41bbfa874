// GPT-NeoX (S. Black et al., 2022) and Pythia (S. Biderman et al., 2023), as Hugging Face names and stores
// them.
#include "models/base/parts.h"
#include "models/base/rotary.h"

namespace ft::models::gpt_neox {
namespace {

using mlir::Value;
using Facts = ::ft::ModelFacts;

constexpr char kEmbedding[] = "gpt_neox.embed_in.weight";
constexpr char kHead[] = "embed_out.weight";

// Query, key and value of a head lie side by side: [batch, seq, heads, 3, head size].
Value part(GraphBuilder &graph, const ModelConfig &config, Value fused, int64_t index) {
  int64_t batch = config.batch, seq = config.seq, heads = config.num_heads, size = config.head_size;
  Value sliced = graph.slice(fused, {0, 0, 0, index * size}, {batch, seq, heads, size});
  return graph.reshape(sliced, {batch, seq, heads * size});
}

Value buildAttention(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix, Value x,
                     int64_t layer) {
  int64_t heads = config.num_heads, width = heads * config.head_size;
  Value fused = graph.linear(prefix + "query_key_value", x, 3 * width, config.qkv_bias);
  fused = graph.reshape(fused, {config.batch, config.seq, heads, 3 * config.head_size});
  Value q = rotate(graph, config, graph.named("q", part(graph, config, fused, 0)), heads, false);
  Value k = rotate(graph, config, graph.named("k", part(graph, config, fused, 1)), heads, false);
  Value v = graph.named("v", part(graph, config, fused, 2));
  Value mixed = graph.attention(q, k, v, heads, heads, attentionOf(graph, config, layer));
  return graph.linear(prefix + "dense", mixed, config.hidden_size, config.attention_output_bias);
}

// In parallel, x + Attention(LN1 x) + MLP(LN2 x); else the MLP sees x + Attention(LN1 x).
Value buildBlock(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix, Value x,
                 int64_t layer) {
  Value h = graph.ownLayerNorm(prefix + "input_layernorm", x, config.norm_eps);
  Value attended =
      addResidual(graph, config, x, buildAttention(graph, config, prefix + "attention.", h, layer));
  h = graph.ownLayerNorm(prefix + "post_attention_layernorm", config.parallel_residual ? x : attended,
                         config.norm_eps);
  h = graph.linear(prefix + "mlp.dense_h_to_4h", h, config.intermediate_size, true);
  h = graph.linear(prefix + "mlp.dense_4h_to_h", activate(graph, config, h), config.hidden_size, true);
  return addResidual(graph, config, attended, h);
}

mlir::OwningOpRef<mlir::ModuleOp> build(mlir::MLIRContext &context, const ModelName &name,
                                        const ModelConfig &config) {
  GraphBuilder graph(context, name, "gpt_neox.", config);
  graph.enterLayer("gpt_neox.embed");
  Value table = tokenTable(graph, config, kEmbedding, kHead);
  Value x = graph.embedding(graph.tokens(), table);
  x = graph.named("x", graph.dropout(x, config.embedding_dropout));
  for (int64_t i = 0; i < config.num_layers; ++i) {
    std::string layer = "gpt_neox.layers." + std::to_string(i);
    graph.enterLayer(layer);
    x = buildBlock(graph, config, layer + ".", x, i);
  }
  graph.enterLayer("gpt_neox.head");
  x = graph.ownLayerNorm("gpt_neox.final_layer_norm", x, config.norm_eps);
  Value head = headWeight(graph, config, kEmbedding, kHead);
  Value logits = graph.named("logits", graph.matmulTransposed(x, head, Value()));
  return graph.finish(graph.named("loss", graph.crossEntropy(logits, graph.targets())));
}

std::string check(const ModelConfig &config) {
  std::string error = checkActivation(config);
  return error.empty() ? checkRotary(config) : error;
}

ModelConfig withFacts(ModelConfig config) {
  config.norm = "layer_norm";
  config.activation = "gelu";
  config.qkv_bias = config.attention_output_bias = config.mlp_bias = true;
  config.parallel_residual = true;
  config.rope_theta = 1e4;
  config.rope_fraction = 0.25;
  return config;
}

Preset pythia(const char *name, int64_t hidden, int64_t layers, int64_t heads, int64_t vocab) {
  Sizes sizes = {hidden, layers, heads, heads, 4 * hidden, vocab, 2048};
  return {name, std::string("pythia-") + name, {}, withFacts(configOf("gpt_neox", sizes))};
}

std::vector<::ft::FactMember> facts() {
  std::vector<::ft::FactMember> facts = rotaryFacts();
  facts.insert(facts.end(), {&Facts::parallel_residual, &Facts::qkv_bias, &Facts::attention_output_bias,
                             &Facts::tied_head});
  return withCommonFacts(facts);
}

} // namespace

void addModels(std::vector<ModelSpec> &models) {
  ModelConfig debug = withFacts(debugConfigOf("gpt_neox", {64, 2, 4, 4, 256, 256, 64}));
  models.push_back(
      {.name = "gpt_neox",
       .summary = "GPT-NeoX and Pythia: attention and MLP side by side, a quarter of each head rotated",
       .presets = {{"debug", "gpt-neox-debug", {}, debug},
                   pythia("70m", 512, 6, 8, 50304),
                   pythia("160m", 768, 12, 12, 50304),
                   pythia("410m", 1024, 24, 16, 50304),
                   pythia("1b", 2048, 16, 8, 50304),
                   pythia("1.4b", 2048, 24, 16, 50304),
                   pythia("6.9b", 4096, 32, 32, 50432)},
       .options = {"seq", "layers", "hidden", "heads", "ffn", "vocab", "context", "dropout", "packed"},
       .modelTypes = {"gpt_neox"},
       .honours = facts(),
       .check = check,
       .build = build});
}

} // namespace ft::models::gpt_neox
