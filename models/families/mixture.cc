// Decoders with mixtures of experts: Mixtral (A. Jiang et al., 2024) and Qwen3-MoE (A. Yang et al., 2025),
// with the names that transformers' modules have; the experts of a layer are one tensor.
#include "models/base/decoder.h"
#include "models/base/parts.h"

namespace ft::models::mixture {
namespace {

using mlir::Value;
using Facts = ::ft::ModelFacts;

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
  routes.probabilities = graph.softmax(
      graph.named("router_logits", graph.linear(prefix + "gate", x, config.num_experts, false)));
  routes.ids = graph.named("experts", graph.largest(routes.probabilities, config.experts_per_token));
  routes.weights = graph.create<mlir::ft::GatherElementsOp>(
      mlir::cast<mlir::RankedTensorType>(routes.ids.getType()).clone(graph.types().getF32Type()),
      routes.probabilities, routes.ids);
  if (config.normalized_routing) {
    int64_t tokens = config.batch * config.seq;
    Value sum = graph.reshape(graph.sum(routes.weights, {1}), {tokens, 1});
    Value sums = graph.broadcast(sum, {tokens, config.experts_per_token});
    routes.weights = graph.map<mlir::ft::DivOp>({routes.weights, sums});
  }
  return routes;
}

Value gated(GraphBuilder &graph, const ModelConfig &config, Value gateUp) {
  auto parts = graph.split(gateUp, 2);
  return activateGated(graph, config, parts[0], parts[1]);
}

// Every expert computes all tokens; what is not wanted has weight 0. Two products, with the experts side by
// side.
Value dense(GraphBuilder &graph, const ModelConfig &config, const Routes &routes, Value x, Value gateUp,
            Value down) {
  int64_t tokens = config.batch * config.seq, experts = config.num_experts, hidden = config.hidden_size,
          ffn = config.intermediate_size;
  Value weights = graph.create<mlir::ft::ScatterAddElementsOp>(routes.probabilities.getType(), routes.weights,
                                                               routes.ids);
  Value side = graph.reshape(gateUp, {experts * 2 * ffn, hidden});
  Value h = graph.reshape(graph.matmulTransposed(x, side, Value()), {tokens, experts, 2 * ffn});
  Value weight = graph.broadcast(graph.reshape(weights, {tokens, experts, 1}), {tokens, experts, ffn});
  h = graph.map<mlir::ft::MulOp>({gated(graph, config, h), weight});
  side = graph.reshape(graph.transpose(down, {0, 2, 1}), {experts * ffn, hidden});
  return graph.matmul(graph.reshape(h, {tokens, experts * ffn}), side, Value());
}

// Each expert computes its own tokens, which lie side by side.
Value grouped(GraphBuilder &graph, const ModelConfig &config, const Routes &routes, Value counts, Value x,
              Value gateUp, Value down) {
  int64_t tokens = config.batch * config.seq, active = config.experts_per_token, rows = tokens * active,
          hidden = config.hidden_size;
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
  Value h =
      gated(graph, config, product(graph.embedding(token, x), gateUp, ends, 2 * config.intermediate_size));
  Value y = product(h, down, ends, hidden);
  // Back: choice i lies at the place of i in the order.
  Value place = graph.create<mlir::ft::ArgsortOp>(ids({rows}), order, /*descending=*/false);
  Value back = graph.embedding(graph.reshape(place, {tokens, active}), y);
  Value weight =
      graph.broadcast(graph.reshape(routes.weights, {tokens, active, 1}), {tokens, active, hidden});
  return graph.sum(graph.map<mlir::ft::MulOp>({back, weight}), {1});
}

// Files of transformers have a tensor of each expert and product, and Mixtral's another name for the layer.
void nameExperts(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix) {
  bool mixtral = config.model_type == "mixtral";
  llvm::StringRef layer = llvm::StringRef(prefix).drop_back(llvm::StringRef("mlp.").size());
  std::string stored = (layer + (mixtral ? "block_sparse_moe." : "mlp.")).str();
  std::string each = stored + "experts.{0.." + std::to_string(config.num_experts - 1) + "}.";
  graph.storedAs(prefix + "experts.gate_up_proj",
                 each + (mixtral ? "{w1,w3}.weight" : "{gate_proj,up_proj}.weight"));
  graph.storedAs(prefix + "experts.down_proj", each + (mixtral ? "w2.weight" : "down_proj.weight"));
  if (mixtral)
    graph.storedAs(prefix + "gate.weight", stored + "gate.weight");
}

void addTo(GraphBuilder &graph, Value &sum, Value term) { sum = sum ? graph.add(sum, term) : term; }

// x [batch, seq, hidden] -> the same.
Value experts(GraphBuilder &graph, const ModelConfig &config, const std::string &prefix, Value x,
              Load &load) {
  int64_t tokens = config.batch * config.seq, experts = config.num_experts, hidden = config.hidden_size;
  Value rows = graph.reshape(x, {tokens, hidden});
  Routes routes = route(graph, config, prefix, rows);
  Value gateUp =
      graph.parameter(prefix + "experts.gate_up_proj", {experts, 2 * config.intermediate_size, hidden},
                      Init::normal(kInitDeviation));
  Value down = graph.parameter(prefix + "experts.down_proj", {experts, hidden, config.intermediate_size},
                               Init::normal(kInitDeviation));
  nameExperts(graph, config, prefix);
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
  double tokens = double(config.batch) * double(config.seq) * double(config.num_layers);
  Value products = graph.map<mlir::ft::MulOp>({load.counts, load.probabilities});
  return graph.scale(graph.sum(products, {0}), double(config.num_experts) / (tokens * tokens));
}

mlir::OwningOpRef<mlir::ModuleOp> build(mlir::MLIRContext &context, const ModelName &name,
                                        const ModelConfig &config) {
  GraphBuilder graph(context, name, "model.", config);
  Load load;
  auto mlp = [&](GraphBuilder &graph, const ModelConfig &config, const std::string &prefix, Value x) {
    return experts(graph, config, prefix + "mlp.", x, load);
  };
  Value x = buildTokenEmbedding(graph, config);
  for (int64_t i = 0; i < config.num_layers; ++i)
    x = buildDecoderLayer(graph, config, i, x, x, mlp);
  Value crossEntropy = buildHeadLoss(graph, config, x);
  graph.output("cross_entropy", crossEntropy);
  Value balanced = balance(graph, config, load);
  graph.output("router_loss", balanced);
  Value loss = crossEntropy;
  if (config.router_loss != 0)
    loss = graph.add(crossEntropy, graph.scale(balanced, config.router_loss));
  return graph.finish(graph.named("loss", loss));
}

std::string check(const ModelConfig &config) {
  if (config.experts_per_token > config.num_experts)
    return "--active-experts=" + std::to_string(config.experts_per_token) +
           " is more than --experts=" + std::to_string(config.num_experts);
  return checkDecoder(config);
}

ModelConfig mixtral(ModelConfig config, int64_t experts, int64_t active) {
  config = decoderOf(config);
  config.rope_theta = 1e6;
  config.num_experts = experts;
  config.experts_per_token = active;
  config.normalized_routing = true;
  config.router_loss = 0.02;
  return config;
}

ModelConfig qwen3Moe(ModelConfig config, int64_t experts, int64_t active) {
  config = mixtral(config, experts, active);
  config.norm_eps = 1e-6;
  config.qk_norm = "head";
  config.router_loss = 0.001;
  return config;
}

std::vector<::ft::FactMember> facts() {
  return decoderFacts(
      {&Facts::num_experts, &Facts::experts_per_token, &Facts::normalized_routing, &Facts::router_loss});
}

} // namespace

void addModels(std::vector<ModelSpec> &models) {
  ModelConfig debug = mixtral(debugConfigOf("mixtral", {64, 2, 4, 2, 96, 256, 64}), 4, 2);
  ModelConfig large = mixtral(configOf("mixtral", {4096, 32, 32, 8, 14336, 32000, 32768}), 8, 2);
  models.push_back({.name = "mixtral",
                    .summary = "Mixtral: a Llama with a mixture of experts in place of each MLP",
                    .presets = {{"debug", "mixtral-debug", {}, debug}, {"8x7b", "mixtral-8x7b", {}, large}},
                    .options = decoderOptions({"experts", "active-experts", "routing", "packed"}),
                    .modelTypes = {"mixtral"},
                    .honours = facts(),
                    .check = check,
                    .build = build});
  debug = qwen3Moe(debugConfigOf("qwen3_moe", {64, 2, 4, 2, 96, 256, 64, 32}), 6, 3);
  debug.normalized_routing = false;
  large = qwen3Moe(configOf("qwen3_moe", {2048, 48, 32, 4, 768, 151936, 40960, 128}), 128, 8);
  models.push_back(
      {.name = "qwen3_moe",
       .summary = "Qwen3-MoE: a Qwen3 with a mixture of many small experts in place of each MLP",
       .presets = {{"debug", "qwen3-moe-debug", {}, debug}, {"30b-a3b", "qwen3-30b-a3b", {}, large}},
       .options = decoderOptions({"head-size", "experts", "active-experts", "routing", "packed"}),
       .modelTypes = {"qwen3_moe"},
       .honours = facts(),
       .check = check,
       .build = build});
}

} // namespace ft::models::mixture
