#include "models/base/decoder.h"

#include <cmath>

#include "models/base/parts.h"
#include "models/base/rotary.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FormatVariadic.h"

namespace ft::models {
namespace {

using mlir::Value;
using Facts = ::ft::ModelFacts;

constexpr char kEmbedding[] = "model.embed_tokens.weight";
constexpr char kHead[] = "lm_head.weight";

bool plusOne(const ModelConfig &config) { return config.norm == "rms_norm_plus_one"; }

Value normWeight(GraphBuilder &graph, const ModelConfig &config, const std::string &name, int64_t width) {
  return graph.parameter(name + ".weight", {width}, Init::constant(plusOne(config) ? 0 : 1));
}

// 1 + weight is made inside of the composite, which computes in f32: in bf16 it would lose bits of a small
// weight.
Value norm(GraphBuilder &graph, const ModelConfig &config, Value x, Value weight) {
  if (!plusOne(config))
    return graph.rmsNorm(x, weight, config.norm_eps);
  return graph.composite("gemma_norm", {x, weight}, [&](mlir::ValueRange args) {
    return graph.rmsNorm(args[0], graph.map<mlir::ft::ShiftOp>(args[1], 1.0), config.norm_eps);
  });
}

// Over each head.
Value headNorm(GraphBuilder &graph, const ModelConfig &config, const std::string &name, Value x,
               int64_t heads) {
  Value weight = normWeight(graph, config, name, config.head_size);
  if (!plusOne(config))
    return graph.qkNorm(x, weight, heads, config.norm_eps);
  std::string composite = ("gemma_norm_of_" + llvm::Twine(heads) + "_heads").str();
  return graph.composite(composite, {x, weight}, [&](mlir::ValueRange args) {
    return graph.qkNorm(args[0], graph.map<mlir::ft::ShiftOp>(args[1], 1.0), heads, config.norm_eps);
  });
}

// Normed by a weight of its own.
Value ownNorm(GraphBuilder &graph, const ModelConfig &config, const std::string &name, Value x) {
  return norm(graph, config, x, normWeight(graph, config, name, config.hidden_size));
}

// Of queries, or of keys.
Value projectionNorm(GraphBuilder &graph, const ModelConfig &config, const std::string &name, Value x,
                     int64_t heads) {
  if (config.qk_norm == "head")
    return headNorm(graph, config, name, x, heads);
  if (config.qk_norm == "projection")
    return norm(graph, config, x, normWeight(graph, config, name, config.head_size * heads));
  return x;
}

struct Projections {
  Value q, k, v;
};

Projections project(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix, Value normQ,
                    Value normKv, bool fused) {
  int64_t width = config.head_size * config.num_heads, kvWidth = config.head_size * config.num_kv_heads;
  if (!fused)
    return {graph.linear(prefix + "q_proj", normQ, width, config.qkv_bias),
            graph.linear(prefix + "k_proj", normKv, kvWidth, config.qkv_bias),
            graph.linear(prefix + "v_proj", normKv, kvWidth, config.qkv_bias)};
  Value all = graph.linear(prefix + "qkv_proj", normQ, width + 2 * kvWidth, config.qkv_bias);
  if (width == kvWidth) {
    auto parts = graph.split(all, 3);
    return {parts[0], parts[1], parts[2]};
  }
  auto part = [&](int64_t begin, int64_t size) {
    return graph.slice(all, {0, 0, begin}, {config.batch, config.seq, size});
  };
  return {part(0, width), part(width, kvWidth), part(width + kvWidth, kvWidth)};
}

Value attention(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix, Value normQ,
                Value normKv, const BlockInputs &inputs) {
  auto [q, k, v] = project(graph, config, prefix, normQ, normKv, inputs.layout.fused);
  graph.named("q", q);
  graph.named("k", k);
  graph.named("v", v);
  q = projectionNorm(graph, config, prefix + "q_norm", q, config.num_heads);
  k = projectionNorm(graph, config, prefix + "k_norm", k, config.num_kv_heads);
  AttentionOptions options = attentionOf(graph, config, inputs.layer);
  options.causal = inputs.causal;
  if (!llvm::is_contained(config.layers_without_rope, inputs.layer)) {
    q = rotate(graph, config, q, config.num_heads, options.window > 0);
    k = rotate(graph, config, k, config.num_kv_heads, options.window > 0);
  }
  Value mixed = graph.attention(q, k, v, config.num_heads, config.num_kv_heads, options);
  return graph.linear(prefix + "o_proj", mixed, config.hidden_size, config.attention_output_bias);
}

Value buildFusedMlp(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix, Value x) {
  auto parts = graph.split(
      graph.linear(prefix + "mlp.gate_up_proj", x, 2 * config.intermediate_size, config.mlp_bias), 2);
  Value h = activateGated(graph, config, parts[0], parts[1]);
  return graph.linear(prefix + "mlp.down_proj", h, config.hidden_size, config.mlp_bias);
}

} // namespace

Value buildGatedMlp(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix, Value x) {
  int64_t width = config.intermediate_size;
  Value gate = graph.named("gate", graph.linear(prefix + "mlp.gate_proj", x, width, config.mlp_bias));
  Value up = graph.named("up", graph.linear(prefix + "mlp.up_proj", x, width, config.mlp_bias));
  Value h = activateGated(graph, config, gate, up);
  return graph.linear(prefix + "mlp.down_proj", h, config.hidden_size, config.mlp_bias);
}

Value buildDecoderBlock(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix,
                        const BlockInputs &inputs, MlpBuilder mlp) {
  bool before = config.norm_placement != "output", after = config.norm_placement != "pre";
  Value normQ = inputs.q, normKv = inputs.kv;
  if (before) {
    Value weight = normWeight(graph, config, prefix + "input_layernorm", config.hidden_size);
    normQ = norm(graph, config, inputs.q, weight);
    normKv = inputs.kv == inputs.q ? normQ : norm(graph, config, inputs.kv, weight);
  }
  Value attended = attention(graph, config, prefix + "self_attn.", normQ, normKv, inputs);
  if (after)
    attended = ownNorm(graph, config, prefix + "post_attention_layernorm", attended);
  Value x = addResidual(graph, config, inputs.q, attended);
  // Where it is the only one, the norm before the MLP is named for what it follows.
  const char *name = after ? "pre_feedforward_layernorm" : "post_attention_layernorm";
  Value y = mlp(graph, config, prefix, before ? ownNorm(graph, config, prefix + name, x) : x);
  if (after)
    y = ownNorm(graph, config, prefix + "post_feedforward_layernorm", y);
  return addResidual(graph, config, x, y);
}

Value buildDecoderLayer(GraphBuilder &graph, const ModelConfig &config, int64_t index, Value q, Value kv,
                        MlpBuilder mlp, DecoderLayout layout) {
  std::string layer = "model.layers." + std::to_string(index);
  graph.enterLayer(layer);
  return buildDecoderBlock(graph, config, layer + ".",
                           {.q = q, .kv = kv, .causal = config.causal, .layer = index, .layout = layout},
                           mlp);
}

Value buildTokenEmbedding(GraphBuilder &graph, const ModelConfig &config) {
  graph.enterLayer("model.embed");
  Value table = tokenTable(graph, config, kEmbedding, kHead);
  Value x = embed(graph, config, graph.tokens(), table);
  if (config.embedding_multiplier != 1)
    x = graph.scale(x, config.embedding_multiplier);
  return graph.named("x", graph.dropout(x, config.embedding_dropout));
}

Value buildHeadLoss(GraphBuilder &graph, const ModelConfig &config, Value x) {
  graph.enterLayer("model.head");
  Value normed = ownNorm(graph, config, "model.norm", x);
  Value head = headWeight(graph, config, kEmbedding, kHead);
  Value logits = graph.matmulTransposed(normed, head, Value());
  if (config.logit_multiplier != 1)
    logits = graph.scale(logits, config.logit_multiplier);
  if (config.logit_softcap > 0)
    logits = graph.map<mlir::ft::SoftCapOp>(logits, config.logit_softcap);
  return graph.named("loss", graph.crossEntropy(graph.named("logits", logits), graph.targets()));
}

mlir::OwningOpRef<mlir::ModuleOp> buildDecoder(mlir::MLIRContext &context, const ModelName &name,
                                               const ModelConfig &config) {
  GraphBuilder graph(context, name, "model.", config);
  DecoderLayout layout{.fused = config.model_type == "phi3"};
  Value x = buildTokenEmbedding(graph, config);
  for (int64_t i = 0; i < config.num_layers; ++i)
    x = buildDecoderLayer(graph, config, i, x, x, layout.fused ? buildFusedMlp : buildGatedMlp, layout);
  return graph.finish(buildHeadLoss(graph, config, x));
}

ModelConfig decoderOf(ModelConfig config) {
  config.rope_theta = 1e4;
  config.activation = "silu";
  config.gated_mlp = true;
  return config;
}

std::string checkDecoder(const ModelConfig &config) {
  if (config.norm == "layer_norm" || config.norm_placement == "post")
    return llvm::formatv("norms of this kind ({0}, {1}) are not built", config.norm, config.norm_placement);
  if (config.rope_fraction != 1 && config.model_type != "phi3")
    return llvm::formatv("only {0} of each head is rotated, which a {1} cannot say", config.rope_fraction,
                         config.model_type);
  std::string error = checkActivation(config);
  return error.empty() ? checkRotary(config) : error;
}

std::vector<::ft::FactMember> decoderFacts(std::vector<::ft::FactMember> more) {
  std::vector<::ft::FactMember> facts = withCommonFacts(rotaryFacts());
  more.insert(more.end(), {&Facts::layers_without_rope, &Facts::norm, &Facts::norm_placement,
                           &Facts::qkv_bias, &Facts::attention_output_bias, &Facts::mlp_bias, &Facts::qk_norm,
                           &Facts::tied_head, &Facts::causal, &Facts::padding_token, &Facts::sliding_window,
                           &Facts::sliding_layers, &Facts::attention_scale, &Facts::attention_scale_by_layer,
                           &Facts::attention_softcap, &Facts::logit_softcap, &Facts::embedding_multiplier,
                           &Facts::residual_multiplier, &Facts::logit_multiplier});
  facts.insert(facts.end(), more.begin(), more.end());
  return facts;
}

std::vector<std::string> decoderOptions(std::initializer_list<const char *> more) {
  std::vector<std::string> options = {"seq", "layers", "hidden",  "heads",  "kv-heads",
                                      "ffn", "vocab",  "context", "dropout"};
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

} // namespace ft::models
