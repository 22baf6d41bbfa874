// Decoders with mixtures of experts: Mixtral (A. Jiang et al., 2024) and Qwen3-MoE (A. Yang et al., 2025),
// with the names that transformers' modules have; the experts of a layer are one tensor.
#include "models/base/decoder.h"

namespace ft::models::mixture {
namespace {

using mlir::Value;

// Where the tokens of a layer go.
struct Routes {
  Value probabilities; // [tokens, experts]
  Value ids;           // [tokens, active]: the most probable experts
  Value weights;       // [tokens, active]
};

// Of all layers, for the load-balancing loss.
struct Load {
  Value counts;        // [experts]: how often each was chosen
  Value probabilities; // [experts]: sums over tokens
};

Routes route(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix, Value x) {
  Routes routes;
  routes.probabilities =
      graph.softmax(graph.named("router_logits", graph.linear(prefix + "gate", x, config.experts, false)));
  routes.ids = graph.named("experts", graph.largest(routes.probabilities, config.activeExperts));
  routes.weights = graph.create<mlir::ft::GatherElementsOp>(
      mlir::cast<mlir::RankedTensorType>(routes.ids.getType()).clone(graph.types().getF32Type()),
      routes.probabilities, routes.ids);
  if (config.normalizedRouting) {
    int64_t tokens = config.batch * config.seq;
    Value sum = graph.reshape(graph.sum(routes.weights, {1}), {tokens, 1});
    Value sums = graph.broadcast(sum, {tokens, config.activeExperts});
    routes.weights = graph.map<mlir::ft::DivOp>({routes.weights, sums});
  }
  return routes;
}

Value gated(GraphBuilder &graph, Value gateUp) {
  auto parts = graph.split(gateUp, 2);
  return graph.swiglu(parts[0], parts[1]);
}

// Every expert computes all tokens; what is not wanted has weight 0. Two products, with the experts side by
// side.
Value dense(GraphBuilder &graph, const ModelConfig &config, const Routes &routes, Value x, Value gateUp,
            Value down) {
  int64_t tokens = config.batch * config.seq, experts = config.experts, hidden = config.hidden,
          ffn = config.ffn;
  Value weights = graph.create<mlir::ft::ScatterAddElementsOp>(routes.probabilities.getType(), routes.weights,
                                                               routes.ids);
  Value side = graph.reshape(gateUp, {experts * 2 * ffn, hidden});
  Value h = graph.reshape(graph.matmulTransposed(x, side, Value()), {tokens, experts, 2 * ffn});
  Value weight = graph.broadcast(graph.reshape(weights, {tokens, experts, 1}), {tokens, experts, ffn});
  h = graph.map<mlir::ft::MulOp>({gated(graph, h), weight});
  side = graph.reshape(graph.transpose(down, {0, 2, 1}), {experts * ffn, hidden});
  return graph.matmul(graph.reshape(h, {tokens, experts * ffn}), side, Value());
}

// Each expert computes its own tokens, which lie side by side.
Value grouped(GraphBuilder &graph, const ModelConfig &config, const Routes &routes, Value counts, Value x,
              Value gateUp, Value down) {
  int64_t tokens = config.batch * config.seq, active = config.activeExperts, rows = tokens * active,
          hidden = config.hidden;
  mlir::Type i32 = graph.types().getI32Type(), f32 = graph.types().getF32Type();
  auto ids = [&](llvm::ArrayRef<int64_t> shape) { return mlir::RankedTensorType::get(shape, i32); };
  auto floats = [&](llvm::ArrayRef<int64_t> shape) { return mlir::RankedTensorType::get(shape, f32); };
  auto product = [&](Value a, Value w, Value ends, int64_t width) -> Value {
    return graph.create<mlir::ft::GroupedDotOp>(floats({rows, width}), a, w, ends, /*transpose_b=*/true);
  };
  // Row i of the sorted ones is choice order[i], which is choice order[i] % active of token order[i] /
  // active.
  Value chosen = graph.reshape(routes.ids, {rows});
  Value order =
      graph.named("order", graph.create<mlir::ft::ArgsortOp>(ids({rows}), chosen, /*descending=*/false));
  Value ends = graph.create<mlir::ft::CumsumOp>(counts.getType(), counts, /*reverse=*/false);
  Value token = graph.map<mlir::ft::FloorDivOp>(order, double(active));
  Value h = gated(graph, product(graph.embedding(token, x), gateUp, ends, 2 * config.ffn));
  Value y = product(h, down, ends, hidden);
  // Back: choice i lies at the place of i in the order.
  Value place = graph.create<mlir::ft::ArgsortOp>(ids({rows}), order, /*descending=*/false);
  Value back = graph.embedding(graph.reshape(place, {tokens, active}), y);
  Value weight =
      graph.broadcast(graph.reshape(routes.weights, {tokens, active, 1}), {tokens, active, hidden});
  return graph.sum(graph.map<mlir::ft::MulOp>({back, weight}), {1});
}

void addTo(GraphBuilder &graph, Value &sum, Value term) { sum = sum ? graph.add(sum, term) : term; }

// x [batch, seq, hidden] -> the same.
Value experts(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix, Value x,
              Load &load) {
  int64_t tokens = config.batch * config.seq, experts = config.experts, hidden = config.hidden;
  Value rows = graph.reshape(x, {tokens, hidden});
  Routes routes = route(graph, config, prefix, rows);
  Value gateUp = graph.parameter(prefix + "experts.gate_up_proj", {experts, 2 * config.ffn, hidden},
                                 Init::normal(kInitDeviation));
  Value down = graph.parameter(prefix + "experts.down_proj", {experts, hidden, config.ffn},
                               Init::normal(kInitDeviation));
  Value counts = graph.create<mlir::ft::HistogramOp>(
      mlir::RankedTensorType::get({experts}, graph.types().getI32Type()), routes.ids);
  addTo(graph, load.counts, graph.toFloat(counts));
  addTo(graph, load.probabilities, graph.sum(routes.probabilities, {0}));
  Value y = config.routing == "grouped" ? grouped(graph, config, routes, counts, rows, gateUp, down)
                                        : dense(graph, config, routes, rows, gateUp, down);
  return graph.reshape(y, {config.batch, config.seq, hidden});
}

// experts * sum over experts of (part of the tokens of all layers that chose it) * (its mean probability):
// equation 4 to 6 of W. Fedus et al., Switch Transformers, 2021, where each choice of a token counts.
Value balance(GraphBuilder &graph, const ModelConfig &config, const Load &load) {
  double tokens = double(config.batch) * double(config.seq) * double(config.layers);
  Value products = graph.map<mlir::ft::MulOp>({load.counts, load.probabilities});
  return graph.scale(graph.sum(products, {0}), double(config.experts) / (tokens * tokens));
}

mlir::OwningOpRef<mlir::ModuleOp> build(mlir::MLIRContext &context, const std::string &preset,
                                        const ModelConfig &config) {
  ::ft::ModelFacts facts = decoderFacts(config);
  facts.num_experts = config.experts;
  facts.experts_per_token = config.activeExperts;
  facts.normalized_routing = config.normalizedRouting;
  facts.router_loss = config.routerLoss;
  GraphBuilder graph(context, {config.modelType, preset, "model.", facts}, config);
  Load load;
  auto mlp = [&](GraphBuilder &graph, const ModelConfig &config, const std::string &prefix, Value x) {
    return experts(graph, config, prefix + "mlp.", x, load);
  };
  Value x = buildTokenEmbedding(graph, config);
  for (int64_t i = 0; i < config.layers; ++i)
    x = buildDecoderLayer(graph, config, i, x, x, mlp);
  Value crossEntropy = buildHeadLoss(graph, config, x);
  graph.output("cross_entropy", crossEntropy);
  Value balanced = balance(graph, config, load);
  graph.output("router_loss", balanced);
  Value loss = graph.add(crossEntropy, graph.scale(balanced, config.routerLoss));
  return graph.finish(graph.named("loss", loss));
}

std::string check(const ModelConfig &config) {
  if (config.activeExperts > config.experts)
    return "--active-experts=" + std::to_string(config.activeExperts) +
           " is more than --experts=" + std::to_string(config.experts);
  return checkDecoder(config);
}

ModelConfig mixtral() {
  return {.hidden = 4096,
          .layers = 32,
          .heads = 32,
          .kvHeads = 8,
          .ffn = 14336,
          .vocab = 32000,
          .context = 32768,
          .batch = 1,
          .seq = 2048,
          .normEps = 1e-5,
          .ropeBase = 1e6,
          .modelType = "mixtral",
          .experts = 8,
          .activeExperts = 2,
          .routerLoss = 0.02};
}

ModelConfig qwen3Moe() {
  ModelConfig config = mixtral();
  config.hidden = 2048;
  config.layers = 48;
  config.kvHeads = 4;
  config.headSize = 128;
  config.ffn = 768;
  config.vocab = 151936;
  config.context = 40960;
  config.normEps = 1e-6;
  config.modelType = "qwen3_moe";
  config.qkNorm = true;
  config.experts = 128;
  config.activeExperts = 8;
  config.routerLoss = 0.001;
  return config;
}

ModelConfig debug(ModelConfig config, int64_t experts, int64_t active) {
  config.hidden = 64;
  config.layers = 2;
  config.heads = 4;
  config.kvHeads = 2;
  config.headSize = config.headSize > 0 ? 32 : 0;
  config.ffn = 96;
  config.vocab = 256;
  config.context = config.seq = 64;
  config.batch = 4;
  config.experts = experts;
  config.activeExperts = active;
  return config;
}

} // namespace

void addModels(std::vector<ModelSpec> &models) {
  models.push_back({.name = "mixtral",
                    .summary = "Mixtral: a Llama with a mixture of experts in place of each MLP",
                    .presets = {{"debug", "mixtral-debug", {}, debug(mixtral(), 4, 2)},
                                {"8x7b", "mixtral-8x7b", {}, mixtral()}},
                    .options = decoderOptions({"experts", "active-experts", "routing"}),
                    .check = check,
                    .build = build});
  ModelConfig small = debug(qwen3Moe(), 6, 3);
  small.normalizedRouting = false;
  models.push_back(
      {.name = "qwen3_moe",
       .summary = "Qwen3-MoE: a Qwen3 with a mixture of many small experts in place of each MLP",
       .presets = {{"debug", "qwen3-moe-debug", {}, small}, {"30b-a3b", "qwen3-30b-a3b", {}, qwen3Moe()}},
       .options = decoderOptions({"head-size", "experts", "active-experts", "routing"}),
       .check = check,
       .build = build});
}

} // namespace ft::models::mixture
