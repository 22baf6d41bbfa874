#include "test/gradients/graph_text.h"

#include <fmt/format.h>

namespace mlir::ft::test {

std::string tensorType(const Dims& dims, const std::string& element) {
  std::string text = "tensor<";
  for (int64_t dim : dims) text += fmt::format("{}x", dim);
  return text + element + ">";
}

std::string moduleText(const GraphCase& graph) {
  std::vector<ParameterSpec> parameters = graph.parameters;
  std::string tail = "  return %r : tensor<f32>\n";
  Dims targets = graph.targets;
  if (!graph.result.empty()) {
    parameters.push_back({"functional", graph.result, /*frozen=*/true});
    targets.assign(graph.result.begin(), graph.result.end() - 1);
    tail = fmt::format(
        "  %weighted = ft.mul %r, %functional : {0}, {0}\n"
        "  %loss = ft.cross_entropy %weighted, %targets : ({0}, {1}) -> tensor<f32>\n"
        "  return %loss : tensor<f32>\n",
        tensorType(graph.result), tensorType(targets, "i32"));
  }
  std::string symbols, gets;
  for (const ParameterSpec& parameter : parameters) {
    std::string type = tensorType(parameter.dims);
    symbols += fmt::format("ft.parameter @{} : {} = #ft.init<normal, 1.0>{}\n", parameter.name, type,
                           parameter.frozen ? " {frozen}" : "");
    gets += fmt::format("  %{0} = ft.get @{0} : {1}\n", parameter.name, type);
  }
  return fmt::format("{}func.func @forward(%tokens: {}, %targets: {}) -> tensor<f32> {{\n{}{}\n{}}}\n",
                     symbols, tensorType(graph.tokens, "i32"), tensorType(targets, "i32"), gets, graph.body,
                     tail);
}

std::vector<GraphCase> allCases() {
  std::vector<GraphCase> all = opCases();
  for (const auto& group : {attentionCases(), latentCases(), primitiveCases()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace mlir::ft::test
