// The block of Llama and of the Free Transformer: RMSNorm, grouped-query attention with rotary positions,
// SwiGLU.
#pragma once

#include <string>

#include "models/base/graph_builder.h"

namespace ft::models {

struct BlockInputs {
  mlir::Value q;  // [batch, seq, hidden]; the residual stream
  mlir::Value kv; // the same value as q, or another of its shape
  bool causal = true;
};

// a = q + Wo Attention(RMS(q), RMS(kv)); y = a + Wdown SwiGLU(Wgate RMS(a), Wup RMS(a)). One weight
// normalises both q and kv. Parameters are `prefix` + "input_layernorm.weight", "self_attn.q_proj.weight" and
// so on, as Hugging Face's Llama names them, stored [out, in]. With dropout, that of what is added to q and
// to a. Uses hidden, heads, kvHeads, ffn, normEps, ropeBase and qkvBias of the config.
mlir::Value buildDecoderBlock(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix,
                              const BlockInputs &inputs);

// "model.embed_tokens.weight", with the alias "lm_head.weight" where the head is tied: tokens -> [batch, seq,
// hidden].
mlir::Value buildTokenEmbedding(GraphBuilder &graph, const ModelConfig &config);

// "model.norm.weight", the head and the loss over x [batch, seq, hidden].
mlir::Value buildHeadLoss(GraphBuilder &graph, const ModelConfig &config, mlir::Value x);

// Of a decoder made of the above: a Llama, or a Qwen2 where queries, keys and values have biases.
::ft::ModelFacts decoderFacts(const ModelConfig &config);

// One clear line when no such block can be built, else empty.
std::string checkDecoder(const ModelConfig &config);

} // namespace ft::models
