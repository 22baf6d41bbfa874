#include <cmath>

#include "test/conformance/case.h"

namespace ft::conformance {
namespace {

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
  for (DType dtype : kFloats) AddRope(cases, dtype);
  return cases;
}

}  // namespace ft::conformance
