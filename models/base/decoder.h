// Decoders: Llama, Qwen, Gemma, the Free Transformer and what is like them, by the facts of their config.
#pragma once

#include <string>

#include "models/base/graph_builder.h"
#include "models/base/model_spec.h"

namespace ft::models {

// How the weights of a decoder are stored, which no fact says.
struct DecoderLayout {
  bool fused = false; // queries, keys and values in one product, gate and up in another: Phi-3
};

// Of the residual stream after attention, normalised: [batch, seq, hidden] -> what is added to it.
using MlpBuilder = llvm::function_ref<mlir::Value(GraphBuilder &graph, const ModelConfig &config,
                                                  const std::string &prefix, mlir::Value x)>;

// activation(x Wgate) * (x Wup), times Wdown.
mlir::Value buildGatedMlp(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix,
                          mlir::Value x);

struct BlockInputs {
  mlir::Value q;  // [batch, seq, hidden]; the residual stream
  mlir::Value kv; // the same value as q, or another of its shape
  bool causal = true;
  int64_t layer = -1; // its number, which decides about windows and positions; -1: neither
  DecoderLayout layout = {};
};

// a = q + Wo Attention(RMS(q), RMS(kv)); y = a + MLP(RMS(a)). One weight normalises both q and kv. With
// norm_placement "both" there is a norm before each sum, too; with "output" those alone. Parameters are
// `prefix`
// + "input_layernorm.weight", "self_attn.q_proj.weight" and so on, as Hugging Face names them, stored [out,
// in].
mlir::Value buildDecoderBlock(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix,
                              const BlockInputs &inputs, MlpBuilder mlp = buildGatedMlp);

// Enters layer `index` and builds its block.
mlir::Value buildDecoderLayer(GraphBuilder &graph, const ModelConfig &config, int64_t index, mlir::Value q,
                              mlir::Value kv, MlpBuilder mlp = buildGatedMlp, DecoderLayout layout = {});

// "model.embed_tokens.weight", with the alias "lm_head.weight" where the head is tied: tokens -> [batch, seq,
// hidden].
mlir::Value buildTokenEmbedding(GraphBuilder &graph, const ModelConfig &config);

// "model.norm.weight", the head and the loss over x [batch, seq, hidden].
mlir::Value buildHeadLoss(GraphBuilder &graph, const ModelConfig &config, mlir::Value x);

// All of it.
mlir::OwningOpRef<mlir::ModuleOp> buildDecoder(mlir::MLIRContext &context, const ModelName &name,
                                               const ModelConfig &config);

// Of a preset: what all decoders have, sizes as they are.
ModelConfig decoderOf(ModelConfig config);

// One clear line when no such decoder can be built, else empty.
std::string checkDecoder(const ModelConfig &config);

// The facts that these read, and `more`.
std::vector<::ft::FactMember> decoderFacts(std::vector<::ft::FactMember> more = {});

// Options that change one, and `more`.
std::vector<std::string> decoderOptions(std::initializer_list<const char *> more = {});

} // namespace ft::models
