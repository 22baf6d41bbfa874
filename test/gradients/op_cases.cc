// Data movement, products, elementwise ops, norms, losses.
#include <fmt/format.h>

#include "test/gradients/graph_text.h"

namespace mlir::ft::test {
namespace {

using Cases = std::vector<GraphCase>;

std::string joined(const Dims& dims) {
  std::string text;
  for (int64_t dim : dims) text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text;
}

Dims withLast(Dims dims, int64_t last) {
  dims.back() = last;
  return dims;
}

// One operand and one result of the same type.
void addUnary(Cases& cases, const std::string& name, const std::string& op, const std::string& attributes,
              const Dims& dims) {
  cases.push_back({fmt::format("{}_{}", name, joined(dims)),
                   {{"x", dims}},
                   fmt::format("  %r = ft.{} %x{} : {}", op, attributes, tensorType(dims)),
                   dims});
}

// `b` has the shape of `a` or a suffix of it.
void addBinary(Cases& cases, const std::string& op, const Dims& a, const Dims& b) {
  cases.push_back({fmt::format("{}_{}_{}", op, joined(a), joined(b)),
                   {{"a", a}, {"b", b}},
                   fmt::format("  %r = ft.{} %a, %b : {}, {}", op, tensorType(a), tensorType(b)),
                   a});
}

void addElementwise(Cases& cases) {
  for (const Dims& dims : {Dims{3, 5}, Dims{2, 3, 7}, Dims{1, 33}}) {
    addUnary(cases, "copy", "copy", "", dims);
    addUnary(cases, "scale", "scale", ", -1.75", dims);
    addUnary(cases, "gelu_tanh", "gelu", " approximate \"tanh\"", dims);
    addUnary(cases, "gelu_erf", "gelu", " approximate \"none\"", dims);
    for (const char* op : {"add", "mul"}) {
      addBinary(cases, op, dims, dims);
      addBinary(cases, op, dims, {dims.back()});
    }
    cases.push_back({"swiglu_" + joined(dims),
                     {{"gate", dims}, {"up", dims}},
                     fmt::format("  %r = ft.swiglu %gate, %up : {}", tensorType(dims)),
                     dims});
  }
  addBinary(cases, "add", {4, 3, 5}, {3, 5});
  addBinary(cases, "mul", {4, 3, 5}, {3, 5});
  // One value as both operands: two contributions from one op.
  for (const char* op : {"add", "mul"})
    cases.push_back({fmt::format("{}_of_itself", op),
                     {{"a", {3, 5}}},
                     fmt::format("  %r = ft.{} %a, %a : tensor<3x5xf32>, tensor<3x5xf32>", op),
                     {3, 5}});
  cases.push_back({"swiglu_of_itself", {{"a", {3, 5}}}, "  %r = ft.swiglu %a, %a : tensor<3x5xf32>", {3, 5}});
  for (const auto& [from, to] : {std::pair<Dims, Dims>{{5}, {3, 5}}, {{2, 7}, {3, 2, 7}}, {{5}, {2, 3, 5}}})
    cases.push_back({"broadcast_" + joined(to),
                     {{"x", from}},
                     fmt::format("  %r = ft.broadcast %x : {} -> {}", tensorType(from), tensorType(to)),
                     to});
}

// Rates from none to most; twice, with numbers of their own.
void addDropouts(Cases& cases) {
  const std::string rng = "  %rng = ft.input \"rng\" : tensor<3xi64>\n";
  for (const Dims& dims : {Dims{3, 5}, Dims{2, 3, 7}, Dims{1, 33}})
    for (const char* rate : {"0.0", "0.25", "0.9"})
      cases.push_back({fmt::format("dropout_{}_rate_{}", joined(dims), rate),
                       {{"x", dims}},
                       rng + fmt::format("  %r = ft.dropout %x, %rng rate {} stream 2 : {}, tensor<3xi64>",
                                         rate, tensorType(dims)),
                       dims});
  cases.push_back({"dropout_of_both_terms",
                   {{"x", {4, 9}}},
                   rng + "  %a = ft.dropout %x, %rng rate 0.5 stream 2 : tensor<4x9xf32>, tensor<3xi64>\n"
                         "  %b = ft.dropout %x, %rng rate 0.5 stream 3 : tensor<4x9xf32>, tensor<3xi64>\n"
                         "  %r = ft.mul %a, %b : tensor<4x9xf32>, tensor<4x9xf32>",
                   {4, 9}});
  cases.push_back({"random_signs",
                   {{"x", {5, 9}}},
                   rng + "  %w = ft.random_bits %rng stream 4 : tensor<3xi64> -> tensor<5x9xi32>\n"
                         "  %s = ft.sign %w : tensor<5x9xi32>\n"
                         "  %f = ft.convert %s : tensor<5x9xi32> -> tensor<5x9xf32>\n"
                         "  %r = ft.mul %x, %f : tensor<5x9xf32>, tensor<5x9xf32>",
                   {5, 9}});
}

void addNorms(Cases& cases) {
  for (const Dims& dims : {Dims{2, 3, 5}, Dims{1, 17}, Dims{37, 33}})
    for (const char* eps : {"1.0e-5", "0.25"}) {
      Dims row = {dims.back()};
      cases.push_back({fmt::format("layer_norm_{}_eps_{}", joined(dims), eps),
                       {{"x", dims}, {"w", row}, {"b", row}},
                       fmt::format("  %r = ft.layer_norm %x, %w, %b eps {} : {}, {}, {}", eps,
                                   tensorType(dims), tensorType(row), tensorType(row)),
                       dims});
      cases.push_back(
          {fmt::format("rms_norm_{}_eps_{}", joined(dims), eps),
           {{"x", dims}, {"w", row}},
           fmt::format("  %r = ft.rms_norm %x, %w eps {} : {}, {}", eps, tensorType(dims), tensorType(row)),
           dims});
    }
}

// A sum that its norm and another op read: a cluster computes all of it.
void addResidualNorms(Cases& cases) {
  const Dims dims = {2, 3, 5}, row = {5};
  const std::string whole = tensorType(dims), columns = tensorType(row);
  const std::string sum = fmt::format("  %s = ft.add %a, %b : {0}, {0}\n", whole);
  const std::string rest = fmt::format("  %r = ft.mul %s, %n : {0}, {0}", whole);
  cases.push_back(
      {"residual_layer_norm",
       {{"a", dims}, {"b", dims}, {"w", row}, {"v", row}},
       sum + fmt::format("  %n = ft.layer_norm %s, %w, %v eps 1.0e-5 : {0}, {1}, {1}\n", whole, columns) +
           rest,
       dims});
  cases.push_back(
      {"residual_rms_norm",
       {{"a", dims}, {"b", dims}, {"w", row}},
       sum + fmt::format("  %n = ft.rms_norm %s, %w eps 1.0e-5 : {}, {}\n", whole, columns) + rest,
       dims});
}

// `a` is [..., K] and the result [..., n]; with transpose_a, `a` is [..., M] and the result [M, n].
void addMatmul(Cases& cases, const Dims& a, int64_t n, const std::string& transpose, bool bias) {
  Dims b = transpose == "transpose_b"   ? Dims{n, a.back()}
           : transpose == "transpose_a" ? withLast(a, n)
                                        : Dims{a.back(), n};
  Dims result = transpose == "transpose_a" ? Dims{a.back(), n} : withLast(a, n);
  GraphCase graph{fmt::format("matmul_{}_{}_{}{}", joined(a), n, transpose, bias ? "_bias" : ""),
                  {{"a", a}, {"b", b}},
                  "",
                  result};
  if (bias) graph.parameters.push_back({"bias", {n}});
  graph.body =
      fmt::format("  %r = ft.matmul %a, %b{} {} : ({}, {}{}) -> {}", bias ? " bias %bias" : "", transpose,
                  tensorType(a), tensorType(b), bias ? ", " + tensorType({n}) : "", tensorType(result));
  cases.push_back(graph);
}

void addMatmuls(Cases& cases) {
  for (const char* transpose : {"", "transpose_a", "transpose_b"})
    for (bool bias : {false, true}) {
      addMatmul(cases, {1, 1}, 2, transpose, bias);
      addMatmul(cases, {3, 5}, 7, transpose, bias);
      addMatmul(cases, {2, 3, 9}, 4, transpose, bias);
      addMatmul(cases, {17, 5}, 19, transpose, bias);
    }
  cases.push_back({"matmul_of_itself",
                   {{"a", {4, 4}}},
                   "  %r = ft.matmul %a, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>",
                   {4, 4}});
  // x + x w: the upstream gradient is the sum that the product's gradient would go into.
  cases.push_back({"residual",
                   {{"x", {3, 5}}, {"w", {5, 5}}},
                   "  %y = ft.matmul %x, %w : (tensor<3x5xf32>, tensor<5x5xf32>) -> tensor<3x5xf32>\n"
                   "  %r = ft.add %x, %y : tensor<3x5xf32>, tensor<3x5xf32>",
                   {3, 5}});
}

// The fusing pipeline computes a product and its GELU at once, in backward the other way round.
void addProductsWithGelu(Cases& cases) {
  const Dims x = {2, 3, 5}, hidden = {2, 3, 7};
  for (bool bias : {false, true}) {
    GraphCase graph{
        fmt::format("matmul_gelu{}", bias ? "_bias" : ""), {{"x", x}, {"w", {5, 7}}, {"v", {7, 5}}}, "", x};
    if (bias) graph.parameters.push_back({"bias", {7}});
    graph.body = fmt::format(
        "  %h = ft.matmul %x, %w{} : ({}, tensor<5x7xf32>{}) -> {}\n"
        "  %g = ft.gelu %h approximate \"tanh\" : {}\n"
        "  %r = ft.matmul %g, %v : ({}, tensor<7x5xf32>) -> {}",
        bias ? " bias %bias" : "", tensorType(x), bias ? ", tensor<7xf32>" : "", tensorType(hidden),
        tensorType(hidden), tensorType(hidden), tensorType(x));
    cases.push_back(graph);
  }
}

void addSplits(Cases& cases) {
  const std::string split =
      "  %p:3 = ft.split %x : tensor<2x3x9xf32> -> tensor<2x3x2xf32>, tensor<2x3x2xf32>, tensor<2x3x5xf32>\n";
  cases.push_back({"split_all",
                   {{"x", {2, 3, 9}}},
                   split + "  %s = ft.mul %p#0, %p#1 : tensor<2x3x2xf32>, tensor<2x3x2xf32>\n"
                           "  %r = ft.concat %s, %p#2, %p#0 : tensor<2x3x2xf32>, tensor<2x3x5xf32>, "
                           "tensor<2x3x2xf32> -> tensor<2x3x9xf32>",
                   {2, 3, 9}});
  cases.push_back({"split_some_unused",
                   {{"x", {2, 3, 9}}},
                   split + "  %r = ft.copy %p#1 : tensor<2x3x2xf32>",
                   {2, 3, 2}});
  cases.push_back(
      {"concat",
       {{"a", {3, 1}}, {"b", {3, 4}}, {"c", {3, 2}}},
       "  %r = ft.concat %a, %b, %c : tensor<3x1xf32>, tensor<3x4xf32>, tensor<3x2xf32> -> tensor<3x7xf32>",
       {3, 7}});
}

void addEmbeddings(Cases& cases) {
  for (const auto& [ids, table] : {std::pair<Dims, Dims>{{2, 3}, {7, 5}}, {{1, 19}, {4, 3}}, {{1}, {1, 2}}}) {
    Dims result = ids;
    result.push_back(table[1]);
    cases.push_back({fmt::format("embedding_{}_{}", joined(ids), joined(table)),
                     {{"table", table}},
                     fmt::format("  %r = ft.embedding %tokens, %table : ({}, {}) -> {}",
                                 tensorType(ids, "i32"), tensorType(table), tensorType(result)),
                     result,
                     ids,
                     table[0]});
  }
  // Learned positions.
  cases.push_back({"positions",
                   {{"table", {5, 3}}, {"x", {2, 4, 3}}},
                   "  %ids = ft.iota : tensor<4xi32>\n"
                   "  %p = ft.embedding %ids, %table : (tensor<4xi32>, tensor<5x3xf32>) -> tensor<4x3xf32>\n"
                   "  %r = ft.add %x, %p : tensor<2x4x3xf32>, tensor<4x3xf32>",
                   {2, 4, 3}});
  // The table is the head's weight too, as in GPT-2: its gradient is one sum over two very different ops.
  cases.push_back(
      {"tied_embedding",
       {{"table", {7, 5}}},
       "  %x = ft.embedding %tokens, %table : (tensor<2x3xi32>, tensor<7x5xf32>) -> tensor<2x3x5xf32>\n"
       "  %again = ft.get @table : tensor<7x5xf32>\n"
       "  %y = ft.matmul %x, %again transpose_b : (tensor<2x3x5xf32>, tensor<7x5xf32>) -> tensor<2x3x7xf32>\n"
       "  %r = ft.cross_entropy %y, %targets : (tensor<2x3x7xf32>, tensor<2x3xi32>) -> tensor<f32>",
       {},
       {2, 3},
       7,
       {2, 3},
       7});
}

// Scaled losses, so that the upstream gradient is not 1.
void addLosses(Cases& cases) {
  for (const Dims& dims : {Dims{5, 7}, Dims{2, 3, 11}, Dims{1, 2}}) {
    Dims targets(dims.begin(), dims.end() - 1);
    std::string type = tensorType(targets, "i32");
    cases.push_back({"cross_entropy_" + joined(dims),
                     {{"logits", dims}},
                     fmt::format("  %ce = ft.cross_entropy %logits, %targets : ({}, {}) -> tensor<f32>\n"
                                 "  %r = ft.scale %ce, 0.3 : tensor<f32>",
                                 tensorType(dims), type),
                     {},
                     {1},
                     1,
                     targets,
                     dims.back()});
    for (int64_t vocabulary : {2, 37}) {
      Dims weight = {vocabulary, dims.back()}, logits = withLast(dims, vocabulary);
      cases.push_back(
          {fmt::format("linear_cross_entropy_{}_{}", joined(dims), vocabulary),
           {{"x", dims}, {"w", weight}},
           fmt::format("  %ce = ft.linear_cross_entropy %x, %w, %targets : ({}, {}, {}) -> tensor<f32>\n"
                       "  %r = ft.scale %ce, 0.3 : tensor<f32>",
                       tensorType(dims), tensorType(weight), type),
           {},
           {1},
           1,
           targets,
           vocabulary});
      cases.push_back(
          {fmt::format("fusable_head_{}_{}", joined(dims), vocabulary),
           {{"x", dims}, {"w", weight}},
           fmt::format("  %l = ft.matmul %x, %w transpose_b : ({}, {}) -> {}\n"
                       "  %r = ft.cross_entropy %l, %targets : ({}, {}) -> tensor<f32>",
                       tensorType(dims), tensorType(weight), tensorType(logits), tensorType(logits), type),
           {},
           {1},
           1,
           targets,
           vocabulary});
    }
  }
  // The head's weight has a later use, whose gradient comes first: the head's continues it.
  cases.push_back({"linear_cross_entropy_into",
                   {{"x", {3, 4}}, {"w", {5, 4}}},
                   "  %a = ft.linear_cross_entropy %x, %w, %targets : (tensor<3x4xf32>, tensor<5x4xf32>, "
                   "tensor<3xi32>) -> tensor<f32>\n"
                   "  %s = ft.scale %x, 0.5 : tensor<3x4xf32>\n"
                   "  %b = ft.linear_cross_entropy %s, %w, %targets : (tensor<3x4xf32>, tensor<5x4xf32>, "
                   "tensor<3xi32>) -> tensor<f32>\n"
                   "  %r = ft.add %a, %b : tensor<f32>, tensor<f32>",
                   {},
                   {1},
                   1,
                   {3},
                   5});
}

}  // namespace

std::vector<GraphCase> opCases() {
  Cases cases;
  addElementwise(cases);
  addDropouts(cases);
  addNorms(cases);
  addResidualNorms(cases);
  addMatmuls(cases);
  addProductsWithGelu(cases);
  addSplits(cases);
  addEmbeddings(cases);
  addLosses(cases);
  return cases;
}

}  // namespace mlir::ft::test
