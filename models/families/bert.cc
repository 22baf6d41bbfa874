// BERT (J. Devlin et al., 2018), as Hugging Face names and stores it: a masked language model, and a
// classifier of sequences.
#include "models/base/common_facts.h"
#include "models/base/graph_builder.h"
#include "models/base/model_spec.h"

namespace ft::models::bert {
namespace {

using mlir::Value;

constexpr char kWords[] = "bert.embeddings.word_embeddings.weight";

Value buildEmbedding(GraphBuilder &graph, const ModelConfig &config) {
  std::string prefix = "bert.embeddings.";
  int64_t hidden = config.hidden;
  Init init = Init::normal(kInitDeviation);
  Value words = graph.parameter(kWords, {config.vocab, hidden}, init);
  Value positions = graph.parameter(prefix + "position_embeddings.weight", {config.context, hidden}, init);
  Value types = graph.parameter(prefix + "token_type_embeddings.weight", {config.tokenTypes, hidden}, init);
  Value x = graph.embedding(graph.tokens(), words);
  x = graph.add(x, graph.embedding(graph.input("token_types", {config.batch, config.seq}), types));
  x = graph.add(x, graph.embedding(graph.iota(config.seq), positions));
  return graph.named("x", graph.dropout(graph.ownLayerNorm(prefix + "LayerNorm", x, config.normEps)));
}

// A norm stands after each sum.
Value buildBlock(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix, Value x) {
  int64_t hidden = config.hidden;
  std::string self = prefix + "attention.self.";
  Value q = graph.named("q", graph.linear(self + "query", x, hidden, true));
  Value k = graph.named("k", graph.linear(self + "key", x, hidden, true));
  Value v = graph.named("v", graph.linear(self + "value", x, hidden, true));
  // Tokens beyond the length of a sequence are padding, which no token sees.
  Value lengths = graph.input("lengths", {config.batch});
  Value mixed = graph.attention(q, k, v, config.heads, config.heads,
                                {.causal = false, .lengths = lengths, .dropout = true});
  Value h = graph.dropout(graph.linear(prefix + "attention.output.dense", mixed, hidden, true));
  x = graph.ownLayerNorm(prefix + "attention.output.LayerNorm", graph.add(x, h), config.normEps);
  h = graph.gelu(graph.linear(prefix + "intermediate.dense", x, config.ffn, true), "none");
  h = graph.dropout(graph.linear(prefix + "output.dense", h, hidden, true));
  return graph.named("x", graph.ownLayerNorm(prefix + "output.LayerNorm", graph.add(x, h), config.normEps));
}

::ft::ModelFacts factsOf(const ModelConfig &config) {
  ::ft::ModelFacts facts = commonFacts(config);
  facts.model_type = "bert";
  facts.positions = "learned";
  facts.norm = "layer_norm";
  facts.norm_placement = "post";
  facts.activation = "gelu";
  facts.qkv_bias = facts.attention_output_bias = facts.mlp_bias = true;
  facts.causal = false;
  facts.token_types = config.tokenTypes;
  facts.num_labels = config.labels;
  facts.tied_head = true;
  facts.attention_dropout = config.dropout;
  return facts;
}

Value buildEncoder(GraphBuilder &graph, const ModelConfig &config) {
  graph.enterLayer("bert.embeddings");
  Value x = buildEmbedding(graph, config);
  for (int64_t i = 0; i < config.layers; ++i) {
    std::string layer = "bert.encoder.layer." + std::to_string(i);
    graph.enterLayer(layer);
    x = buildBlock(graph, config, layer + ".", x);
  }
  return x;
}

mlir::OwningOpRef<mlir::ModuleOp> finish(GraphBuilder &graph, Value logits, Value labels) {
  graph.named("logits", logits);
  graph.output("accuracy", graph.accuracy(logits, labels));
  return graph.finish(graph.named("loss", graph.crossEntropy(logits, labels)));
}

// Labels of -100 are of tokens that were not masked.
mlir::OwningOpRef<mlir::ModuleOp> buildMasked(mlir::MLIRContext &context, const std::string &preset,
                                              const ModelConfig &config) {
  GraphBuilder graph(context, {"bert", preset, "bert.", factsOf(config)}, config);
  Value x = buildEncoder(graph, config);
  std::string prefix = "cls.predictions.";
  graph.enterLayer(prefix + "transform");
  x = graph.gelu(graph.linear(prefix + "transform.dense", x, config.hidden, true), "none");
  x = graph.ownLayerNorm(prefix + "transform.LayerNorm", x, config.normEps);
  Value bias = graph.parameter(prefix + "bias", {config.vocab}, Init::constant(0));
  graph.addAlias(prefix + "bias", prefix + "decoder.bias");
  graph.addAlias(kWords, prefix + "decoder.weight");
  Value logits = graph.matmulTransposed(x, graph.read(kWords), bias);
  return finish(graph, logits, graph.classLabels({config.seq}));
}

// The first token stands for the sequence.
mlir::OwningOpRef<mlir::ModuleOp> buildClassifier(mlir::MLIRContext &context, const std::string &preset,
                                                  const ModelConfig &config) {
  GraphBuilder graph(context, {"bert_classifier", preset, "bert.", factsOf(config)}, config);
  Value x = buildEncoder(graph, config);
  graph.enterLayer("classifier");
  Value first = graph.reshape(graph.slice(x, {0, 0, 0}, {config.batch, 1, config.hidden}),
                              {config.batch, config.hidden});
  Value pooled = graph.map<mlir::ft::TanhOp>(graph.linear("bert.pooler.dense", first, config.hidden, true));
  Value logits = graph.linear("classifier", graph.dropout(pooled), config.labels, true);
  return finish(graph, logits, graph.classLabels());
}

ModelConfig dimensions(int64_t hidden, int64_t layers, int64_t heads) {
  return {.hidden = hidden,
          .layers = layers,
          .heads = heads,
          .kvHeads = heads,
          .ffn = 4 * hidden,
          .vocab = 30522,
          .context = 512,
          .batch = 1,
          .seq = 512,
          .normEps = 1e-12,
          .tokenTypes = 2};
}

ModelConfig debugConfig() {
  ModelConfig config = dimensions(64, 2, 4);
  config.vocab = 256;
  config.context = config.seq = 64;
  config.batch = 4;
  return config;
}

ModelConfig withLabels(ModelConfig config, int64_t labels) {
  config.labels = labels;
  return config;
}

} // namespace

void addModels(std::vector<ModelSpec> &models) {
  std::vector<std::string> options = {"seq", "layers", "hidden",  "heads",
                                      "ffn", "vocab",  "context", "dropout"};
  models.push_back(
      {.name = "bert",
       .summary = "BERT as a masked language model; safetensors with tokens, token_types, lengths, labels",
       .presets = {{"debug", "bert-debug", {}, debugConfig()},
                   {"base", "bert-base", {}, dimensions(768, 12, 12)},
                   {"large", "bert-large", {}, dimensions(1024, 24, 16)}},
       .options = options,
       .check = nullptr,
       .build = buildMasked});
  options.push_back("labels");
  models.push_back(
      {.name = "bert_classifier",
       .summary = "BERT as a classifier of sequences; safetensors as above, a label each",
       .presets = {{"debug", "bert-classifier-debug", {}, withLabels(debugConfig(), 3)},
                   {"base", "bert-classifier-base", {}, withLabels(dimensions(768, 12, 12), 2)},
                   {"large", "bert-classifier-large", {}, withLabels(dimensions(1024, 24, 16), 2)}},
       .options = options,
       .check = nullptr,
       .build = buildClassifier});
}

} // namespace ft::models::bert
