#include <cmath>

#include "test/conformance/case.h"

namespace ft::conformance {
namespace {

using Function = std::function<Arrays(const Arrays&)>;

Function Map(double (*f)(double)) {
  return [f](const Arrays& in) {
    Array r = in[0];
    for (double& v : r.values) v = f(v);
    return Arrays{r};
  };
}

double GeluTanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double GeluErf(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }

Arrays Swiglu(const Arrays& in) {
  Array r = in[0];
  for (int64_t i = 0; i < r.size(); ++i) {
    const double z = in[0].values[i];
    r.values[i] = z / (1 + std::exp(-z)) * in[1].values[i];
  }
  return {r};
}

// Two by two rotation of the pairs (i, i + h), straight from the definition.
Arrays Rope(const Arrays& in, int64_t heads, double base, bool inverse) {
  Array r = in[0];
  const int64_t positions = r.dims[1], size = r.dims[2] / heads, h = size / 2;
  for (int64_t row = 0; row < r.rows(); ++row) {
    for (int64_t head = 0; head < heads; ++head) {
      for (int64_t i = 0; i < h; ++i) {
        const double angle = (row % positions) * std::pow(base, -double(i) / h) * (inverse ? -1 : 1);
        const int64_t at = row * r.dims[2] + head * size + i;
        const double a = in[0].values[at], b = in[0].values[at + h];
        r.values[at] = a * std::cos(angle) - b * std::sin(angle);
        r.values[at + h] = a * std::sin(angle) + b * std::cos(angle);
      }
    }
  }
  return {r};
}

const std::vector<std::vector<int64_t>> kShapes = {{1},       {3, 5},    {2, 3, 7}, {1, 1024},
                                                   {2, 1031}, {7, 1032}, {3, 5001}, {3, 17, 4096}};

void AddForward(std::vector<Case>& cases, DType dtype) {
  uint64_t seed = 1;
  for (const auto& dims : kShapes) {
    const Array x = As(Random(dims, ++seed, 6.0), dtype), y = As(Random(dims, ++seed, 6.0), dtype);
    const std::string label = std::string(Name(dtype)) + " of " + std::to_string(x.size());
    for (bool tanh : {true, false}) {
      cases.push_back({"gelu",
                       label + (tanh ? " tanh" : " erf"),
                       {x},
                       Attributes({{"approximate", tanh ? "tanh" : "none"}}),
                       Map(tanh ? GeluTanh : GeluErf)({x}),
                       {.reusable = {{0, 0}}}});
    }
    cases.push_back({"swiglu", label, {x, y}, {}, Swiglu({x, y}), {.reusable = {{0, 0}}}});
  }
}

// What `f`, which works element by element, makes of `upstream` for operand `wrt`: all elements move at once.
Array ElementGradient(const Function& f, const Arrays& in, size_t wrt, const Array& upstream) {
  constexpr double kStep = 1e-5;  // as NumericGradient
  Arrays above = in, below = in;
  for (double& v : above[wrt].values) v += kStep;
  for (double& v : below[wrt].values) v -= kStep;
  const Array high = f(above)[0], low = f(below)[0];
  Array gradient = in[wrt];
  for (int64_t i = 0; i < gradient.size(); ++i) {
    gradient.values[i] = upstream.values[i] * (high.values[i] - low.values[i]) / (2 * kStep);
  }
  return gradient;
}

void AddGradients(std::vector<Case>& cases, DType dtype) {
  for (const auto& dims : {std::vector<int64_t>{1}, {3, 5}, {2, 67}, {3, 5001}}) {
    const Array x = As(Random(dims, 901, 6.0), dtype), up = As(Random(dims, 902), dtype),
                dy = As(Random(dims, 903), dtype);
    const std::string label = std::string(Name(dtype)) + " of " + std::to_string(x.size());
    for (bool tanh : {true, false}) {
      for (int reuse : {0, 1}) {
        cases.push_back({"gelu_grad",
                         label + (tanh ? " tanh" : " erf"),
                         {dy, x},
                         Attributes({{"approximate", tanh ? "tanh" : "none"}}),
                         {ElementGradient(Map(tanh ? GeluTanh : GeluErf), {x}, 0, dy)},
                         {.reusable = {{0, reuse}}}});
      }
    }
    const Arrays expected = {ElementGradient(Swiglu, {x, up}, 0, dy),
                             ElementGradient(Swiglu, {x, up}, 1, dy)};
    cases.push_back({"swiglu_grad", label, {dy, x, up}, {}, expected, {.reusable = {{0, 0}, {1, 1}}}});
    cases.push_back({"swiglu_grad", label, {dy, x, up}, {}, expected, {.reusable = {{0, 1}, {1, 2}}}});
    cases.push_back({"swiglu_grad", label, {dy, x, up}, {}, expected, {.reusable = {{0, 2}, {1, 0}}}});
  }
}

void AddRope(std::vector<Case>& cases, DType dtype) {
  struct Shape {
    int64_t batch, positions, heads, size;
  };
  std::vector<Shape> shapes = {{1, 1, 1, 2},    {2, 5, 3, 6},   {2, 9, 2, 80},
                               {1, 130, 4, 64}, {19, 3, 2, 16}, {1, 4, 2, 264}};
  if (dtype == DType::kF32) shapes.push_back({1, 131073, 1, 4});  // angles of many turns
  for (const Shape& s : shapes) {
    const Array x = As(Random({s.batch, s.positions, s.heads * s.size}, 77), dtype);
    for (int64_t inverse : {0, 1}) {
      KernelAttributes attributes = Attributes({{"heads", s.heads}, {"base", 10000.0}});
      if (inverse != 0) attributes.Add("inverse", inverse);
      cases.push_back(
          {"rope",
           std::string(Name(dtype)) + " " + std::to_string(s.size) + (inverse != 0 ? " inverse" : ""),
           {x},
           attributes,
           Rope({x}, s.heads, 10000.0, inverse != 0),
           {.reusable = {{0, 0}}}});
    }
  }
}

}  // namespace

std::vector<Case> ElementwiseCases() {
  std::vector<Case> cases;
  for (DType dtype : kFloats) {
    AddForward(cases, dtype);
    AddGradients(cases, dtype);
    AddRope(cases, dtype);
  }
  return cases;
}

}  // namespace ft::conformance
