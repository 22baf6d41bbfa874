#include "models/base/parts.h"

#include <cmath>

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

namespace ft::models {
namespace {

using mlir::Value;

using Function = Value (*)(GraphBuilder &graph, Value x);

// By the names of facts; null for one that is not known.
Function functionOf(llvm::StringRef activation) {
  return llvm::StringSwitch<Function>(activation)
      .Case("silu", [](GraphBuilder &graph, Value x) { return graph.map<mlir::ft::SiluOp>(x); })
      .Case("gelu", [](GraphBuilder &graph, Value x) { return graph.gelu(x, "none"); })
      .Case("gelu_tanh", [](GraphBuilder &graph, Value x) { return graph.gelu(x, "tanh"); })
      .Case("relu", [](GraphBuilder &graph, Value x) { return graph.map<mlir::ft::ReluOp>(x); })
      .Case("relu2", [](GraphBuilder &graph, Value x) { return graph.map<mlir::ft::SquaredReluOp>(x); })
      .Case("tanh", [](GraphBuilder &graph, Value x) { return graph.map<mlir::ft::TanhOp>(x); })
      .Case("sigmoid", [](GraphBuilder &graph, Value x) { return graph.map<mlir::ft::SigmoidOp>(x); })
      .Case("quick_gelu",
            [](GraphBuilder &graph, Value x) {
              Value gate = graph.map<mlir::ft::SigmoidOp>(graph.scale(x, 1.702));
              return graph.map<mlir::ft::MulOp>({x, gate});
            })
      .Default(nullptr);
}

} // namespace

Value activate(GraphBuilder &graph, const ModelConfig &config, Value x) {
  return functionOf(config.activation)(graph, x);
}

Value activateGated(GraphBuilder &graph, const ModelConfig &config, Value gate, Value up) {
  if (config.activation == "silu")
    return graph.swiglu(gate, up);
  if (config.activation == "gelu_tanh")
    return graph.map<mlir::ft::GegluTanhOp>({gate, up});
  if (config.activation == "gelu")
    return graph.map<mlir::ft::GegluOp>({gate, up});
  return graph.map<mlir::ft::MulOp>({activate(graph, config, gate), up});
}

std::string checkActivation(const ModelConfig &config) {
  if (functionOf(config.activation))
    return "";
  return llvm::formatv("the activation \"{0}\" is not known; known are silu, gelu, gelu_tanh, relu, relu2, "
                       "tanh, sigmoid, quick_gelu",
                       config.activation);
}

AttentionOptions attentionOf(GraphBuilder &graph, const ModelConfig &config, int64_t layer) {
  double scale = config.attention_scale;
  if (config.attention_scale_by_layer) {
    double usual = 1 / std::sqrt(double(config.head_size));
    scale = (scale != 0 ? scale : usual) / double(layer + 1);
  }
  return {.causal = config.causal,
          .window = layer >= 0 && config.slides(layer) ? config.sliding_window : 0,
          .scale = scale,
          .softcap = config.attention_softcap,
          .segments = config.packed ? graph.segments() : Value(),
          .dropout = config.attention_dropout};
}

Value isNoPadding(GraphBuilder &graph, const ModelConfig &config, Value ids) {
  Value padding =
      graph.map<mlir::ft::ShiftOp>(graph.map<mlir::ft::ScaleOp>(ids, 0.0), double(config.padding_token));
  return graph.map<mlir::ft::NeOp>({ids, padding});
}

Value embed(GraphBuilder &graph, const ModelConfig &config, Value ids, Value table) {
  Value x = graph.embedding(ids, table);
  if (config.padding_token < 0)
    return x;
  int64_t batch = config.batch, seq = config.seq;
  Value trained = graph.reshape(isNoPadding(graph, config, ids), {batch, seq, 1});
  trained = graph.broadcast(trained, {batch, seq, config.hidden_size});
  return graph.map<mlir::ft::SelectOp>({trained, x, graph.map<mlir::ft::StopGradientOp>(x)});
}

Value tokenTable(GraphBuilder &graph, const ModelConfig &config, const char *table, const char *head) {
  Value value = graph.parameter(table, {config.vocab_size, config.hidden_size}, Init::normal(kInitDeviation));
  if (config.tied_head)
    graph.addAlias(table, head);
  return value;
}

Value headWeight(GraphBuilder &graph, const ModelConfig &config, const char *table, const char *head) {
  return config.tied_head
             ? graph.read(table)
             : graph.parameter(head, {config.vocab_size, config.hidden_size}, Init::normal(kInitDeviation));
}

mlir::OwningOpRef<mlir::ModuleOp> finishClassifier(GraphBuilder &graph, Value logits, Value labels) {
  graph.named("logits", logits);
  graph.output("accuracy", graph.accuracy(logits, labels));
  return graph.finish(graph.named("loss", graph.crossEntropy(logits, labels)));
}

Value addResidual(GraphBuilder &graph, const ModelConfig &config, Value base, Value x) {
  x = graph.dropout(x, config.residual_dropout);
  if (config.residual_multiplier != 1)
    x = graph.scale(x, config.residual_multiplier);
  return graph.named("x", graph.add(base, x));
}

} // namespace ft::models
