// Small forward graphs as MLIR text, for checking one op at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mlir::ft::test {

using Dims = std::vector<int64_t>;

// "tensor<2x3xf32>"
std::string tensorType(const Dims& dims, const std::string& element = "f32");

struct ParameterSpec {
  std::string name;
  Dims dims;
  bool frozen = false;
};

// A graph around the op under test. `body` may use %<name> of every parameter, %tokens, and must define %r.
//
// When %r is a scalar it is the loss. Otherwise the loss is cross_entropy(%r * functional, %targets) with a
// constant random `functional`: smooth, of curvature at most 1, and with a different gradient for every
// element of %r.
struct GraphCase {
  std::string name;
  std::vector<ParameterSpec> parameters;
  std::string body;
  Dims result;             // of %r
  Dims tokens = {1};       // shape of %tokens
  int64_t tokenLimit = 1;  // tokens are drawn below this
  Dims targets = {};       // shape of %targets where %r is a scalar; otherwise that of %r's rows
  int64_t targetLimit = 1;
};

// The module that holds @forward.
std::string moduleText(const GraphCase& graph);

// All cases, by group.
std::vector<GraphCase> opCases();
std::vector<GraphCase> attentionCases();
std::vector<GraphCase> latentCases();
std::vector<GraphCase> primitiveCases();
std::vector<GraphCase> allCases();

}  // namespace mlir::ft::test
