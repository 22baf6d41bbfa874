#include "models/base/decoder.h"

#include <cmath>

#include "models/base/common_facts.h"
#include "llvm/ADT/Twine.h"

namespace ft::models {
namespace {

using mlir::Value;

constexpr char kEmbedding[] = "model.embed_tokens.weight";
constexpr char kHead[] = "lm_head.weight";

Value normWeight(GraphBuilder &graph, const ModelConfig &config, const std::string &name, int64_t width) {
  return graph.parameter(name + ".weight", {width}, Init::constant(config.gemma ? 0 : 1));
}

// Gemma's 1 + weight is made inside of the composite, which computes in f32: in bf16 it would lose bits of a
// small weight.
Value norm(GraphBuilder &graph, const ModelConfig &config, Value x, Value weight) {
  if (!config.gemma)
    return graph.rmsNorm(x, weight, config.normEps);
  return graph.composite("gemma_norm", {x, weight}, [&](mlir::ValueRange args) {
    return graph.rmsNorm(args[0], graph.map<mlir::ft::ShiftOp>(args[1], 1.0), config.normEps);
  });
}

// Over each head.
Value headNorm(GraphBuilder &graph, const ModelConfig &config, const std::string &name, Value x,
               int64_t heads) {
  Value weight = normWeight(graph, config, name, config.sizeOfHead());
  if (!config.gemma)
    return graph.qkNorm(x, weight, heads, config.normEps);
  std::string composite = ("gemma_norm_of_" + llvm::Twine(heads) + "_heads").str();
  return graph.composite(composite, {x, weight}, [&](mlir::ValueRange args) {
    return graph.qkNorm(args[0], graph.map<mlir::ft::ShiftOp>(args[1], 1.0), heads, config.normEps);
  });
}

// Normed by a weight of its own.
Value ownNorm(GraphBuilder &graph, const ModelConfig &config, const std::string &name, Value x) {
  return norm(graph, config, x, normWeight(graph, config, name, config.hidden));
}

Value attention(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix, Value normQ,
                Value normKv, const BlockInputs &inputs) {
  int64_t hidden = config.hidden, width = config.sizeOfHead() * config.heads,
          kvWidth = config.sizeOfHead() * config.kvHeads;
  Value q = graph.named("q", graph.linear(prefix + "q_proj", normQ, width, config.qkvBias));
  Value k = graph.named("k", graph.linear(prefix + "k_proj", normKv, kvWidth, config.qkvBias));
  Value v = graph.named("v", graph.linear(prefix + "v_proj", normKv, kvWidth, config.qkvBias));
  if (config.qkNorm) {
    q = headNorm(graph, config, prefix + "q_norm", q, config.heads);
    k = headNorm(graph, config, prefix + "k_norm", k, config.kvHeads);
  }
  double base = inputs.slides && config.slidingRopeBase > 0 ? config.slidingRopeBase : config.ropeBase;
  q = graph.rope(q, config.heads, base);
  k = graph.rope(k, config.kvHeads, base);
  Value mixed = graph.attention(q, k, v, config.heads, config.kvHeads,
                                {.causal = inputs.causal,
                                 .window = inputs.slides ? config.window : 0,
                                 .scale = config.attentionScale,
                                 .softcap = config.attentionSoftcap});
  return graph.linear(prefix + "o_proj", mixed, hidden, false);
}

} // namespace

Value buildGatedMlp(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix, Value x) {
  Value gate = graph.named("gate", graph.linear(prefix + "mlp.gate_proj", x, config.ffn, false));
  Value up = graph.named("up", graph.linear(prefix + "mlp.up_proj", x, config.ffn, false));
  Value h = config.gemma ? graph.map<mlir::ft::GegluTanhOp>({gate, up}) : graph.swiglu(gate, up);
  return graph.linear(prefix + "mlp.down_proj", h, config.hidden, false);
}

Value buildDecoderBlock(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix,
                        const BlockInputs &inputs, MlpBuilder mlp) {
  Value inputWeight = normWeight(graph, config, prefix + "input_layernorm", config.hidden);
  Value normQ = norm(graph, config, inputs.q, inputWeight);
  Value normKv = inputs.kv == inputs.q ? normQ : norm(graph, config, inputs.kv, inputWeight);
  Value attended = attention(graph, config, prefix + "self_attn.", normQ, normKv, inputs);
  if (config.gemma)
    attended = ownNorm(graph, config, prefix + "post_attention_layernorm", attended);
  Value x = graph.named("x", graph.add(inputs.q, graph.dropout(attended)));
  // Where there is one norm, it is named for what it follows.
  const char *before = config.gemma ? "pre_feedforward_layernorm" : "post_attention_layernorm";
  Value y = mlp(graph, config, prefix, ownNorm(graph, config, prefix + before, x));
  if (config.gemma)
    y = ownNorm(graph, config, prefix + "post_feedforward_layernorm", y);
  return graph.named("x", graph.add(x, graph.dropout(y)));
}

Value buildDecoderLayer(GraphBuilder &graph, const ModelConfig &config, int64_t index, Value q, Value kv,
                        MlpBuilder mlp) {
  std::string layer = "model.layers." + std::to_string(index);
  graph.enterLayer(layer);
  return buildDecoderBlock(graph, config, layer + ".", {.q = q, .kv = kv, .slides = config.slides(index)},
                           mlp);
}

Value buildTokenEmbedding(GraphBuilder &graph, const ModelConfig &config) {
  graph.enterLayer("model.embed");
  Value table = graph.parameter(kEmbedding, {config.vocab, config.hidden}, Init::normal(kInitDeviation));
  if (config.tiedHead)
    graph.addAlias(kEmbedding, kHead);
  Value x = graph.embedding(graph.tokens(), table);
  if (config.gemma)
    x = graph.scale(x, std::sqrt(double(config.hidden)));
  return graph.named("x", graph.dropout(x));
}

Value buildHeadLoss(GraphBuilder &graph, const ModelConfig &config, Value x) {
  graph.enterLayer("model.head");
  Value normed = ownNorm(graph, config, "model.norm", x);
  Value head = config.tiedHead
                   ? graph.read(kEmbedding)
                   : graph.parameter(kHead, {config.vocab, config.hidden}, Init::normal(kInitDeviation));
  Value logits = graph.matmulTransposed(normed, head, Value());
  if (config.logitSoftcap > 0)
    logits = graph.map<mlir::ft::SoftCapOp>(logits, config.logitSoftcap);
  return graph.named("loss", graph.crossEntropy(graph.named("logits", logits), graph.targets()));
}

mlir::OwningOpRef<mlir::ModuleOp> buildDecoder(mlir::MLIRContext &context, llvm::StringRef model,
                                               const std::string &preset, const ModelConfig &config) {
  GraphBuilder graph(context, {model.str(), preset, "model.", decoderFacts(config)}, config);
  Value x = buildTokenEmbedding(graph, config);
  for (int64_t i = 0; i < config.layers; ++i)
    x = buildDecoderLayer(graph, config, i, x, x);
  return graph.finish(buildHeadLoss(graph, config, x));
}

::ft::ModelFacts decoderFacts(const ModelConfig &config) {
  ::ft::ModelFacts facts = commonFacts(config);
  facts.model_type = config.modelType;
  facts.rope_theta = config.ropeBase;
  facts.activation = config.gemma ? "gelu_tanh" : "silu";
  facts.gated_mlp = true;
  facts.qkv_bias = config.qkvBias;
  facts.qk_norm = config.qkNorm ? "head" : "none";
  facts.tied_head = config.tiedHead;
  facts.attention_scale = config.attentionScale;
  facts.attention_softcap = config.attentionSoftcap;
  facts.logit_softcap = config.logitSoftcap;
  if (config.gemma) {
    facts.norm = "rms_norm_plus_one";
    facts.norm_placement = "both";
    facts.embedding_multiplier = std::sqrt(double(config.hidden));
  }
  std::vector<int64_t> sliding;
  for (int64_t i = 0; i < config.layers; ++i)
    if (config.slides(i))
      sliding.push_back(i);
  facts.sliding_window = sliding.empty() ? 0 : config.window;
  if (!sliding.empty())
    facts.rope_theta_sliding = config.slidingRopeBase;
  if (static_cast<int64_t>(sliding.size()) < config.layers)
    facts.sliding_layers = std::move(sliding);
  return facts;
}

std::string checkDecoder(const ModelConfig &config) {
  int64_t size = config.sizeOfHead();
  if (size % 2 == 0)
    return "";
  std::string why = config.headSize > 0 ? "change --head-size"
                                        : (llvm::Twine("it is ") + llvm::Twine(config.hidden) + " / " +
                                           llvm::Twine(config.heads) + " heads; change --hidden or --heads")
                                              .str();
  return ("the head size is " + llvm::Twine(size) + ", but rotary positions need an even one; " + why).str();
}

std::vector<std::string> decoderOptions(std::initializer_list<const char *> more) {
  std::vector<std::string> options = {"seq", "layers", "hidden",  "heads",  "kv-heads",
                                      "ffn", "vocab",  "context", "dropout"};
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

} // namespace ft::models
