// BERT (J. Devlin et al., 2018) and RoBERTa (Y. Liu et al., 2019), as Hugging Face names and stores them:
// masked language models, and classifiers of sequences.
#include "models/base/parts.h"

namespace ft::models::bert {
namespace {

using mlir::Value;
using Facts = ::ft::ModelFacts;

bool isRoberta(const ModelConfig &config) { return config.model_type == "roberta"; }

std::string base(const ModelConfig &config) { return config.model_type + "."; }

std::string wordsOf(const ModelConfig &config) { return base(config) + "embeddings.word_embeddings.weight"; }

// Rows of the table of positions that no token has: RoBERTa counts on from the number of its padding token.
int64_t firstPosition(const ModelConfig &config) { return isRoberta(config) ? config.padding_token + 1 : 0; }

// 0, 1, 2, ...; RoBERTa counts tokens that are no padding, and gives padding its own number.
Value buildPositions(GraphBuilder &graph, const ModelConfig &config) {
  if (!isRoberta(config))
    return graph.iota(config.seq);
  Value counted = graph.convert(isNoPadding(graph, config, graph.tokens()), graph.types().getI32Type());
  Value count = graph.create<mlir::ft::CumsumOp>(counted.getType(), counted, /*reverse=*/false);
  return graph.map<mlir::ft::ShiftOp>(graph.map<mlir::ft::MulOp>({count, counted}),
                                      double(config.padding_token));
}

Value buildEmbedding(GraphBuilder &graph, const ModelConfig &config) {
  std::string prefix = base(config) + "embeddings.";
  int64_t hidden = config.hidden_size;
  Init init = Init::normal(kInitDeviation);
  Value words = graph.parameter(wordsOf(config), {config.vocab_size, hidden}, init);
  Value positions =
      graph.parameter(prefix + "position_embeddings.weight", {config.max_positions, hidden}, init);
  Value types = graph.parameter(prefix + "token_type_embeddings.weight", {config.token_types, hidden}, init);
  Value x = embed(graph, config, graph.tokens(), words);
  x = graph.add(x, graph.embedding(graph.input("token_types", {config.batch, config.seq}), types));
  Value places = buildPositions(graph, config);
  // RoBERTa's padding has a position of its own, which is not trained either.
  x = graph.add(x, isRoberta(config) ? embed(graph, config, places, positions)
                                     : graph.embedding(places, positions));
  x = graph.ownLayerNorm(prefix + "LayerNorm", x, config.norm_eps);
  return graph.named("x", graph.dropout(x, config.embedding_dropout));
}

// A norm stands after each sum.
Value buildBlock(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix, Value x) {
  int64_t hidden = config.hidden_size;
  std::string self = prefix + "attention.self.";
  Value q = graph.named("q", graph.linear(self + "query", x, hidden, true));
  Value k = graph.named("k", graph.linear(self + "key", x, hidden, true));
  Value v = graph.named("v", graph.linear(self + "value", x, hidden, true));
  // Tokens beyond the length of a sequence are padding, which no token sees.
  AttentionOptions options = attentionOf(graph, config, -1);
  options.lengths = graph.input("lengths", {config.batch});
  Value mixed = graph.attention(q, k, v, config.num_heads, config.num_heads, options);
  auto normed = [&](const std::string &name, Value base, Value added) {
    Value sum = graph.add(base, graph.dropout(added, config.residual_dropout));
    return graph.ownLayerNorm(prefix + name, sum, config.norm_eps);
  };
  x = normed("attention.output.LayerNorm", x,
             graph.linear(prefix + "attention.output.dense", mixed, hidden, true));
  Value h =
      activate(graph, config, graph.linear(prefix + "intermediate.dense", x, config.intermediate_size, true));
  return graph.named("x",
                     normed("output.LayerNorm", x, graph.linear(prefix + "output.dense", h, hidden, true)));
}

Value buildEncoder(GraphBuilder &graph, const ModelConfig &config) {
  graph.enterLayer(base(config) + "embeddings");
  Value x = buildEmbedding(graph, config);
  for (int64_t i = 0; i < config.num_layers; ++i) {
    std::string layer = base(config) + "encoder.layer." + std::to_string(i);
    graph.enterLayer(layer);
    x = buildBlock(graph, config, layer + ".", x);
  }
  return x;
}

// Names of the parts of a masked language model's head.
struct MaskedHead {
  std::string layer, dense, norm, bias, decoder;
};

MaskedHead maskedHead(const ModelConfig &config) {
  if (isRoberta(config))
    return {"lm_head", "lm_head.dense", "lm_head.layer_norm", "lm_head.bias", "lm_head.decoder"};
  std::string prefix = "cls.predictions.";
  return {prefix + "transform", prefix + "transform.dense", prefix + "transform.LayerNorm", prefix + "bias",
          prefix + "decoder"};
}

// Logits of all tokens.
Value buildMaskedHead(GraphBuilder &graph, const ModelConfig &config, Value x) {
  MaskedHead head = maskedHead(config);
  graph.enterLayer(head.layer);
  x = graph.linear(head.dense, x, config.hidden_size, true);
  x = isRoberta(config) ? graph.gelu(x, "none") : activate(graph, config, x);
  x = graph.ownLayerNorm(head.norm, x, config.norm_eps);
  Value bias = graph.parameter(head.bias, {config.vocab_size}, Init::constant(0));
  if (config.tied_head) {
    graph.addAlias(head.bias, head.decoder + ".bias");
    graph.addAlias(wordsOf(config), head.decoder + ".weight");
    return graph.matmulTransposed(x, graph.read(wordsOf(config)), bias);
  }
  // The bias that is tied otherwise is there all the same, and nobody reads it.
  return graph.linear(head.decoder, x, config.vocab_size, true);
}

// Logits of the sequences, for which their first tokens stand.
Value buildClassifierHead(GraphBuilder &graph, const ModelConfig &config, Value x) {
  graph.enterLayer("classifier");
  Value first = graph.reshape(graph.slice(x, {0, 0, 0}, {config.batch, 1, config.hidden_size}),
                              {config.batch, config.hidden_size});
  bool roberta = isRoberta(config);
  if (roberta)
    first = graph.dropout(first, config.residual_dropout);
  Value pooled = graph.map<mlir::ft::TanhOp>(
      graph.linear(roberta ? "classifier.dense" : "bert.pooler.dense", first, config.hidden_size, true));
  pooled = graph.dropout(pooled, config.residual_dropout);
  return graph.linear(roberta ? "classifier.out_proj" : "classifier", pooled, config.num_labels, true);
}

// Labels of -100 are of tokens that were not masked.
mlir::OwningOpRef<mlir::ModuleOp> build(mlir::MLIRContext &context, const ModelName &name,
                                        const ModelConfig &config) {
  GraphBuilder graph(context, name, base(config), config);
  Value x = buildEncoder(graph, config);
  bool classifies = config.num_labels > 0;
  Value logits = classifies ? buildClassifierHead(graph, config, x) : buildMaskedHead(graph, config, x);
  Value labels = classifies ? graph.classLabels() : graph.classLabels({config.seq});
  return finishClassifier(graph, logits, labels);
}

int64_t positions(const ModelConfig &config) { return config.max_positions - firstPosition(config); }

std::string check(const ModelConfig &config) {
  if (isRoberta(config) && config.padding_token < 0)
    return "RoBERTa counts positions from that of its padding token, and there is none";
  return checkActivation(config);
}

ModelConfig withFacts(ModelConfig config, int64_t labels) {
  config.positions = "learned";
  config.norm = "layer_norm";
  config.norm_placement = "post";
  config.norm_eps = 1e-12;
  config.activation = "gelu";
  config.qkv_bias = config.attention_output_bias = config.mlp_bias = true;
  config.causal = false;
  config.token_types = 2;
  config.num_labels = labels;
  config.tied_head = true;
  return config;
}

Preset preset(const char *name, const char *fullName, const Sizes &sizes, int64_t labels) {
  return {name, fullName, {}, withFacts(configOf("bert", sizes), labels)};
}

constexpr Sizes kDebug = {64, 2, 4, 4, 256, 256, 64}, kBase = {768, 12, 12, 12, 3072, 30522, 512},
                kLarge = {1024, 24, 16, 16, 4096, 30522, 512};

} // namespace

void addModels(std::vector<ModelSpec> &models) {
  ModelSpec spec{.name = "bert",
                 .summary =
                     "BERT as a masked language model; safetensors with tokens, token_types, lengths, labels",
                 .presets = {{"debug", "bert-debug", {}, withFacts(debugConfigOf("bert", kDebug), 0)},
                             preset("base", "bert-base", kBase, 0),
                             preset("large", "bert-large", kLarge, 0)},
                 .options = {"seq", "layers", "hidden", "heads", "ffn", "vocab", "context", "dropout"},
                 .modelTypes = {"bert", "roberta"},
                 .honours = withCommonFacts(
                     {&Facts::token_types, &Facts::num_labels, &Facts::tied_head, &Facts::padding_token}),
                 .attentionDropout = true,
                 .positions = positions,
                 .check = check,
                 .build = build};
  models.push_back(spec);
  spec.name = "bert_classifier";
  spec.summary = "BERT as a classifier of sequences; safetensors as above, a label each";
  spec.presets = {{"debug", "bert-classifier-debug", {}, withFacts(debugConfigOf("bert", kDebug), 3)},
                  preset("base", "bert-classifier-base", kBase, 2),
                  preset("large", "bert-classifier-large", kLarge, 2)};
  spec.options.push_back("labels");
  models.push_back(spec);
}

} // namespace ft::models::bert
