// Every row of elementwise.def, and the primitives that are not elementwise.
#include <fmt/format.h>

#include "runtime/base/elementwise.h"
#include "test/gradients/graph_text.h"

namespace mlir::ft::test {
namespace {

using Cases = std::vector<GraphCase>;
using ::ft::Elementwise;
using ::ft::ElementwiseDomain;
using ::ft::ElementwiseRow;

// Parameters are drawn from [-1, 1]; these ops want them from [1, 3].
bool wantsPositive(Elementwise kind) {
  return kind == Elementwise::kDiv || kind == Elementwise::kReciprocal || kind == Elementwise::kLog ||
         kind == Elementwise::kSqrt || kind == Elementwise::kRsqrt || kind == Elementwise::kPow;
}

// Text of the parameters, with values of which none is special; several lists where the row's derivative
// depends on them.
std::vector<std::string> parameterTexts(const ElementwiseRow& row) {
  switch (row.kind) {
    case Elementwise::kClamp:
      return {", -0.4, 0.3"};
    case Elementwise::kPow:
      return {", 0.0", ", 1.0", ", 2.0", ", 3.0", ", -2.0", ", 0.5", ", -0.5", ", 2.7"};
    default:
      return {row.num_parameters() == 0 ? "" : ", -1.75"};
  }
}

// %r of operands of these shapes.
void addRow(Cases& cases, const ElementwiseRow& row, const std::string& parameters,
            const std::vector<Dims>& shapes) {
  GraphCase graph;
  std::string operands, types;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::string name(1, static_cast<char>('a' + i)), type = tensorType(shapes[i]);
    graph.parameters.push_back({name, shapes[i]});
    const bool moved = wantsPositive(row.kind);
    if (moved) graph.body += fmt::format("  %{0}1 = ft.shift %{0}, 2.0 : {1}\n", name, type);
    operands += fmt::format("{}%{}{}", i == 0 ? "" : ", ", name, moved ? "1" : "");
    types += (i == 0 ? "" : ", ") + type;
    if (shapes[i].size() > graph.result.size()) graph.result = shapes[i];
  }
  graph.body += fmt::format("  %r = ft.{} {}{} : {}", row.name, operands, parameters, types);
  graph.name = fmt::format("{}{}_{}", row.name, parameters, cases.size());
  cases.push_back(graph);
}

void addRows(Cases& cases) {
  for (const ElementwiseRow& row : ::ft::kElementwiseRows) {
    if (row.domain != ElementwiseDomain::kFloat && row.domain != ElementwiseDomain::kNumber) continue;
    if (row.kind == Elementwise::kStopGradient) continue;  // differences do not stop
    for (const std::string& parameters : parameterTexts(row)) {
      if (row.operands == 1) {
        for (const Dims& dims : {Dims{3, 5}, Dims{1, 33}}) addRow(cases, row, parameters, {dims});
        continue;
      }
      for (const Dims& suffix : {Dims{2, 3, 5}, Dims{3, 5}, Dims{5}, Dims{}}) {
        addRow(cases, row, parameters, {{2, 3, 5}, suffix});
        addRow(cases, row, parameters, {suffix, {2, 3, 5}});
      }
    }
  }
}

// `body` defines %r, of this shape, of parameters a, b and c.
void add(Cases& cases, const std::string& name, std::vector<ParameterSpec> parameters,
         const std::string& body, Dims result) {
  cases.push_back({name, std::move(parameters), body, std::move(result)});
}

void addConditions(Cases& cases) {
  for (const ElementwiseRow& row : ::ft::kElementwiseRows) {
    if (row.domain != ElementwiseDomain::kCompare) continue;
    add(cases, fmt::format("select_{}", row.name), {{"a", {3, 5}}, {"b", {5}}},
        fmt::format("  %c = ft.{} %a, %b : tensor<3x5xf32>, tensor<5xf32>\n"
                    "  %s = ft.square %b : tensor<5xf32>\n"
                    "  %r = ft.select %c, %a, %s : tensor<3x5xi1>, tensor<3x5xf32>, tensor<5xf32>",
                    row.name),
        {3, 5});
  }
  add(cases, "logic", {{"a", {3, 5}}, {"b", {3, 5}}},
      "  %l = ft.lt %a, %b : tensor<3x5xf32>\n"
      "  %g = ft.gt %a, %r0 : tensor<3x5xf32>, tensor<f32>\n"
      "  %n = ft.not %g : tensor<3x5xi1>\n"
      "  %o = ft.or %l, %n : tensor<3x5xi1>\n"
      "  %c = ft.and %o, %g : tensor<3x5xi1>\n"
      "  %r = ft.select %c, %a, %b : tensor<3x5xi1>, tensor<3x5xf32>, tensor<3x5xf32>",
      {3, 5});
  cases.back().body = "  %r0 = ft.fill 0.25 : tensor<f32>\n" + cases.back().body;
  // The slope of the root is infinite at the 0 that stands for what is left out: zero times that would be
  // NaN.
  add(cases, "select_hides_infinities", {{"a", {3, 5}}},
      "  %z = ft.fill 0.0 : tensor<f32>\n"
      "  %c = ft.gt %a, %z : tensor<3x5xf32>, tensor<f32>\n"
      "  %s = ft.select %c, %a, %z : tensor<3x5xi1>, tensor<3x5xf32>, tensor<f32>\n"
      "  %r = ft.sqrt %s : tensor<3x5xf32>",
      {3, 5});
}

void addIntegers(Cases& cases) {
  cases.push_back({"integers",
                   {{"a", {4, 6}}},
                   "  %q = ft.floor_div %tokens, 3.0 : tensor<4x6xi32>\n"
                   "  %m = ft.remainder %tokens, 3.0 : tensor<4x6xi32>\n"
                   "  %s = ft.sub %q, %m : tensor<4x6xi32>\n"
                   "  %t = ft.square %s : tensor<4x6xi32>\n"
                   "  %f = ft.convert %t : tensor<4x6xi32> -> tensor<4x6xf32>\n"
                   "  %r = ft.mul %a, %f : tensor<4x6xf32>",
                   {4, 6},
                   {4, 6},
                   11});
}

void addShapes(Cases& cases) {
  const auto move = [&](const std::string& name, const Dims& from, const std::string& op, const Dims& to) {
    add(cases, name, {{"a", from}},
        fmt::format("  %s = ft.square %a : {0}\n  %r = ft.{1} : {0} -> {2}", tensorType(from), op,
                    tensorType(to)),
        to);
  };
  move("broadcast_ones", {2, 1, 5}, "broadcast %s", {2, 3, 5});
  move("broadcast_last", {2, 3, 1}, "broadcast %s", {2, 3, 5});
  move("broadcast_new_and_ones", {3, 1}, "broadcast %s", {2, 3, 5});
  move("broadcast_scalar", {}, "broadcast %s", {3, 5});
  move("reshape", {2, 6, 5}, "reshape %s", {4, 15});
  move("reshape_8", {2, 6, 5}, "reshape %s", {1, 2, 1, 3, 2, 1, 5, 1});
  move("transpose", {2, 3, 5}, "transpose %s [2, 0, 1]", {5, 2, 3});
  move("transpose_heads", {2, 3, 4, 5}, "transpose %s [0, 2, 1, 3]", {2, 4, 3, 5});
  move("slice", {4, 3, 7}, "slice %s at [1, 0, 2]", {2, 3, 4});
  move("pad", {2, 3, 4}, "pad %s at [1, 0, 2]", {4, 3, 7});
  for (const char* kind : {"sum", "max", "min"}) {
    for (const auto& [dims, to] : std::vector<std::pair<std::string, Dims>>{{"[0]", {3, 5}},
                                                                            {"[1]", {2, 5}},
                                                                            {"[2]", {2, 3}},
                                                                            {"[0, 2]", {3}},
                                                                            {"[0, 1]", {5}},
                                                                            {"[]", {2, 3, 5}}})
      move(fmt::format("reduce_{}_{}", kind, dims), {2, 3, 5},
           fmt::format("reduce \"{}\" %s over {}", kind, dims), to);
  }
  for (int64_t axis : {0, 1, 2, -1}) {
    Dims a = {2, 3, 5}, b = a, whole = a;
    const int64_t at = axis < 0 ? 2 : axis;
    b[at] = 4;
    whole[at] += 4;
    add(cases, fmt::format("concat_axis_{}", axis), {{"a", a}, {"b", b}},
        fmt::format("  %r = ft.concat %a, %b axis {} : {}, {} -> {}", axis, tensorType(a), tensorType(b),
                    tensorType(whole)),
        whole);
  }
}

void addProducts(Cases& cases) {
  for (bool ta : {false, true}) {
    for (bool tb : {false, true}) {
      for (const Dims& lead : {Dims{}, Dims{2}, Dims{2, 3}}) {
        Dims a = lead, b = lead, r = lead;
        a.insert(a.end(), {ta ? 7 : 3, ta ? 3 : 7});
        b.insert(b.end(), {tb ? 5 : 7, tb ? 7 : 5});
        r.insert(r.end(), {3, 5});
        add(cases, fmt::format("dot_{}_{}_{}", ta, tb, lead.size()), {{"a", a}, {"b", b}},
            fmt::format("  %r = ft.dot %a, %b{}{} : {}, {} -> {}", ta ? " transpose_a" : "",
                        tb ? " transpose_b" : "", tensorType(a), tensorType(b), tensorType(r)),
            r);
      }
    }
  }
}

void addIndices(Cases& cases) {
  add(cases, "gather_elements", {{"a", {4, 6}}},
      "  %i = ft.remainder %tokens, 6.0 : tensor<4x3xi32>\n"
      "  %r = ft.gather_elements %a, %i : tensor<4x6xf32>, tensor<4x3xi32> -> tensor<4x3xf32>",
      {4, 3});
  add(cases, "scatter_add_elements", {{"a", {4, 3}}},
      "  %i = ft.remainder %tokens, 6.0 : tensor<4x3xi32>\n"
      "  %r = ft.scatter_add_elements %a, %i : tensor<4x3xf32>, tensor<4x3xi32> -> tensor<4x6xf32>",
      {4, 6});
  for (GraphCase* graph = &cases.back() - 1; graph <= &cases.back(); ++graph) {
    graph->tokens = {4, 3};
    graph->tokenLimit = 50;
  }
  for (const char* reverse : {"", " reverse"})
    add(cases, fmt::format("cumsum{}", reverse), {{"a", {3, 5}}},
        fmt::format("  %r = ft.cumsum %a{} : tensor<3x5xf32> -> tensor<3x5xf32>", reverse), {3, 5});
  add(cases, "top_k", {{"a", {3, 7}}},
      "  %i = ft.argsort %a descending : tensor<3x7xf32> -> tensor<3x2xi32>\n"
      "  %r = ft.gather_elements %a, %i : tensor<3x7xf32>, tensor<3x2xi32> -> tensor<3x2xf32>",
      {3, 2});
  // Rows of experts: as many as tokens say, one behind the other.
  for (bool transposed : {false, true}) {
    add(cases, fmt::format("grouped_dot_{}", transposed),
        {{"a", {9, 4}}, {"b", transposed ? Dims{3, 5, 4} : Dims{3, 4, 5}}},
        fmt::format(
            "  %h = ft.histogram %tokens : tensor<8xi32> -> tensor<3xi32>\n"
            "  %e = ft.cumsum %h : tensor<3xi32> -> tensor<3xi32>\n"
            "  %r = ft.grouped_dot %a, %b, %e{} : tensor<9x4xf32>, {}, tensor<3xi32> -> tensor<9x5xf32>",
            transposed ? " transpose_b" : "", tensorType(transposed ? Dims{3, 5, 4} : Dims{3, 4, 5})),
        {9, 5});
    cases.back().tokens = {8};
    cases.back().tokenLimit = 3;
  }
}

// softmax, a soft cap, layer_norm and GELU as anybody would write them.
void addBodies(Cases& cases) {
  add(cases, "softmax_by_hand", {{"a", {3, 7}}},
      "  %m = ft.reduce \"max\" %a over [1] : tensor<3x7xf32> -> tensor<3xf32>\n"
      "  %m1 = ft.reshape %m : tensor<3xf32> -> tensor<3x1xf32>\n"
      "  %mb = ft.broadcast %m1 : tensor<3x1xf32> -> tensor<3x7xf32>\n"
      "  %c = ft.sub %a, %mb : tensor<3x7xf32>\n"
      "  %e = ft.exp %c : tensor<3x7xf32>\n"
      "  %s = ft.reduce \"sum\" %e over [1] : tensor<3x7xf32> -> tensor<3xf32>\n"
      "  %s1 = ft.reshape %s : tensor<3xf32> -> tensor<3x1xf32>\n"
      "  %sb = ft.broadcast %s1 : tensor<3x1xf32> -> tensor<3x7xf32>\n"
      "  %r = ft.div %e, %sb : tensor<3x7xf32>",
      {3, 7});
  add(cases, "stop_gradient", {{"a", {3, 7}, /*frozen=*/true}, {"b", {3, 7}}},
      "  %s = ft.stop_gradient %a : tensor<3x7xf32>\n"
      "  %r = ft.mul %s, %b : tensor<3x7xf32>",
      {3, 7});
  add(cases, "softmax", {{"a", {2, 3, 7}}}, "  %r = ft.softmax %a : tensor<2x3x7xf32>", {2, 3, 7});
  add(cases, "qk_norm", {{"a", {2, 3, 6}}, {"w", {2}}},
      "  %r = ft.qk_norm %a, %w heads 3 eps 1.0e-5 : tensor<2x3x6xf32>, tensor<2xf32>", {2, 3, 6});
  add(cases, "soft_cap_by_hand", {{"a", {3, 7}}},
      "  %d = ft.scale %a, 0.1 : tensor<3x7xf32>\n"
      "  %t = ft.tanh %d : tensor<3x7xf32>\n"
      "  %r = ft.scale %t, 10.0 : tensor<3x7xf32>",
      {3, 7});
  add(cases, "rms_norm_by_hand", {{"a", {3, 7}}, {"w", {7}}},
      "  %q = ft.square %a : tensor<3x7xf32>\n"
      "  %s = ft.reduce \"sum\" %q over [1] : tensor<3x7xf32> -> tensor<3xf32>\n"
      "  %m = ft.scale %s, 0.14285714285714285 : tensor<3xf32>\n"
      "  %e = ft.shift %m, 1.0e-5 : tensor<3xf32>\n"
      "  %i = ft.rsqrt %e : tensor<3xf32>\n"
      "  %i1 = ft.reshape %i : tensor<3xf32> -> tensor<3x1xf32>\n"
      "  %ib = ft.broadcast %i1 : tensor<3x1xf32> -> tensor<3x7xf32>\n"
      "  %n = ft.mul %a, %ib : tensor<3x7xf32>\n"
      "  %r = ft.mul %n, %w : tensor<3x7xf32>, tensor<7xf32>",
      {3, 7});
}

}  // namespace

std::vector<GraphCase> primitiveCases() {
  Cases cases;
  addRows(cases);
  addConditions(cases);
  addIntegers(cases);
  addShapes(cases);
  addProducts(cases);
  addIndices(cases);
  addBodies(cases);
  return cases;
}

}  // namespace mlir::ft::test
