#include "models/base/decoder_block.h"

#include "models/base/common_facts.h"
#include "llvm/ADT/Twine.h"

namespace ft::models {
namespace {

using mlir::Value;

constexpr double kInitDeviation = 0.02;
constexpr char kEmbedding[] = "model.embed_tokens.weight";
constexpr char kHead[] = "lm_head.weight";

// x [..., in] -> [..., out]
Value linear(GraphBuilder &graph, const std::string &name, Value x, int64_t in, int64_t out, bool bias) {
  Value weight = graph.parameter(name + ".weight", {out, in}, Init::normal(kInitDeviation));
  Value added = bias ? graph.parameter(name + ".bias", {out}, Init::constant(0)) : Value();
  return graph.matmulTransposed(x, weight, added);
}

Value attention(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix, Value normQ,
                Value normKv, bool causal) {
  int64_t hidden = config.hidden, kvWidth = hidden / config.heads * config.kvHeads;
  Value q = graph.named("q", linear(graph, prefix + "q_proj", normQ, hidden, hidden, config.qkvBias));
  Value k = graph.named("k", linear(graph, prefix + "k_proj", normKv, hidden, kvWidth, config.qkvBias));
  Value v = graph.named("v", linear(graph, prefix + "v_proj", normKv, hidden, kvWidth, config.qkvBias));
  q = graph.rope(q, config.heads, config.ropeBase);
  k = graph.rope(k, config.kvHeads, config.ropeBase);
  Value mixed = graph.attention(q, k, v, config.heads, config.kvHeads, {.causal = causal});
  return linear(graph, prefix + "o_proj", mixed, hidden, hidden, false);
}

Value mlp(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix, Value x) {
  Value gate = graph.named("gate", linear(graph, prefix + "gate_proj", x, config.hidden, config.ffn, false));
  Value up = graph.named("up", linear(graph, prefix + "up_proj", x, config.hidden, config.ffn, false));
  return linear(graph, prefix + "down_proj", graph.swiglu(gate, up), config.ffn, config.hidden, false);
}

} // namespace

Value buildDecoderBlock(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix,
                        const BlockInputs &inputs) {
  Value inputWeight = graph.parameter(prefix + "input_layernorm.weight", {config.hidden}, Init::constant(1));
  Value normQ = graph.rmsNorm(inputs.q, inputWeight, config.normEps);
  Value normKv = inputs.kv == inputs.q ? normQ : graph.rmsNorm(inputs.kv, inputWeight, config.normEps);
  Value attended = attention(graph, config, prefix + "self_attn.", normQ, normKv, inputs.causal);
  Value x = graph.named("x", graph.add(inputs.q, graph.dropout(attended)));
  Value postWeight =
      graph.parameter(prefix + "post_attention_layernorm.weight", {config.hidden}, Init::constant(1));
  Value normX = graph.rmsNorm(x, postWeight, config.normEps);
  return graph.named("x", graph.add(x, graph.dropout(mlp(graph, config, prefix + "mlp.", normX))));
}

Value buildTokenEmbedding(GraphBuilder &graph, const ModelConfig &config) {
  Value table = graph.parameter(kEmbedding, {config.vocab, config.hidden}, Init::normal(kInitDeviation));
  if (config.tiedHead)
    graph.addAlias(kEmbedding, kHead);
  return graph.named("x", graph.dropout(graph.embedding(graph.tokens(), table)));
}

Value buildHeadLoss(GraphBuilder &graph, const ModelConfig &config, Value x) {
  Value weight = graph.parameter("model.norm.weight", {config.hidden}, Init::constant(1));
  Value norm = graph.rmsNorm(x, weight, config.normEps);
  Value head = config.tiedHead
                   ? graph.read(kEmbedding)
                   : graph.parameter(kHead, {config.vocab, config.hidden}, Init::normal(kInitDeviation));
  Value logits = graph.named("logits", graph.matmulTransposed(norm, head, Value()));
  return graph.named("loss", graph.crossEntropy(logits));
}

::ft::ModelFacts decoderFacts(const ModelConfig &config) {
  ::ft::ModelFacts facts = commonFacts(config);
  facts.model_type = config.qkvBias ? "qwen2" : "llama";
  facts.rope_theta = config.ropeBase;
  facts.activation = "silu";
  facts.gated_mlp = true;
  facts.qkv_bias = config.qkvBias;
  facts.tied_head = config.tiedHead;
  return facts;
}

std::string checkDecoder(const ModelConfig &config) {
  int64_t headSize = config.hidden / config.heads;
  if (headSize % 2 == 0)
    return "";
  return ("the head size is " + llvm::Twine(headSize) + " (" + llvm::Twine(config.hidden) + " / " +
          llvm::Twine(config.heads) +
          " heads), but rotary positions need an even one; change --hidden or --heads")
      .str();
}

} // namespace ft::models
