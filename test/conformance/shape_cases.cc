// reshape, transpose, slice, pad, dot, and what broadcast and concat do along any dimension.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "fmt/format.h"
#include "test/conformance/case.h"

namespace ft::conformance {
namespace {

using Dims = std::vector<int64_t>;

// Strides of a dense row-major tensor.
Dims StridesOf(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

// Element i of the result is x at sum (place_d + begin_d) strides_d, its places being those in `dims`.
Array Gathered(const Array& x, const Dims& dims, const Dims& strides, const Dims& begin) {
  Array r = Typed(Constant(dims, 0), x.dtype);
  const Dims own = StridesOf(dims);
  for (int64_t i = 0; i < r.size(); ++i) {
    int64_t from = 0;
    for (size_t d = 0; d < dims.size(); ++d) from += (i / own[d] % dims[d] + begin[d]) * strides[d];
    r.values[i] = x.values[from];
  }
  return r;
}

void AddTransposes(std::vector<Case>& cases, DType dtype) {
  for (const auto& [dims, permutation] :
       std::vector<std::pair<Dims, Dims>>{{{3, 5}, {1, 0}},
                                          {{2, 3, 4, 65}, {0, 2, 1, 3}},
                                          {{2, 3, 5}, {2, 0, 1}},
                                          {{2, 1, 3, 2, 1, 2, 3, 2}, {7, 6, 5, 4, 3, 2, 1, 0}},
                                          {{130, 257}, {1, 0}},
                                          {{40000}, {0}}}) {
    const Array x = Numbers(dims, 3, dtype);
    Dims to, strides;
    for (int64_t from : permutation) {
      to.push_back(dims[from]);
      strides.push_back(StridesOf(dims)[from]);
    }
    cases.push_back({"transpose",
                     fmt::format("{} of {}", Name(dtype), x.size()),
                     {x},
                     Attributes({{"permutation", permutation}}),
                     {Gathered(x, to, strides, Dims(to.size(), 0))}});
  }
}

void AddBoxes(std::vector<Case>& cases, DType dtype) {
  struct Box {
    Dims whole, begin, part;
  };
  for (const auto& [whole, begin, part] :
       std::vector<Box>{{{7}, {2}, {3}},
                        {{5, 6}, {1, 0}, {3, 6}},
                        {{5, 6}, {0, 2}, {5, 3}},
                        {{4, 3, 2, 9}, {1, 0, 1, 4}, {2, 3, 1, 5}},
                        {{33, 2049}, {1, 1}, {31, 2048}},
                        {{2, 3, 1, 2, 2, 3, 2, 4}, {1, 0, 0, 1, 0, 2, 0, 1}, {1, 3, 1, 1, 2, 1, 2, 3}}}) {
    const Array x = Numbers(whole, 5, dtype);
    const std::string label = fmt::format("{} of {}", Name(dtype), x.size());
    cases.push_back(
        {"slice", label, {x}, Attributes({{"begin", begin}}), {Gathered(x, part, StridesOf(whole), begin)}});
    const Array small = Numbers(part, 6, dtype);
    Array padded = Typed(Constant(whole, 0), dtype);
    const Dims own = StridesOf(part), strides = StridesOf(whole);
    for (int64_t i = 0; i < small.size(); ++i) {
      int64_t to = 0;
      for (size_t d = 0; d < part.size(); ++d) to += (i / own[d] % part[d] + begin[d]) * strides[d];
      padded.values[to] = small.values[i];
    }
    cases.push_back({"pad", label, {small}, Attributes({{"low", begin}}), {padded}});
  }
}

// Beside those of new leading dimensions (movement_cases.cc).
void AddBroadcasts(std::vector<Case>& cases, DType dtype) {
  for (const auto& [from, to] :
       std::vector<std::pair<Dims, Dims>>{{{2, 1, 5}, {2, 3, 5}},
                                          {{2, 3, 1}, {2, 3, 65}},
                                          {{1, 7}, {300, 7}},
                                          {{}, {3, 5}},
                                          {{3, 1}, {2, 3, 5}},
                                          {{1, 2, 1, 1, 3, 1, 1, 2}, {2, 2, 2, 1, 3, 2, 1, 2}}}) {
    const Array x = Numbers(from, 7, dtype);
    Dims strides(to.size() - from.size(), 0);
    for (size_t d = 0; d < from.size(); ++d) strides.push_back(from[d] == 1 ? 0 : StridesOf(from)[d]);
    cases.push_back({"broadcast",
                     fmt::format("{} ones to {}", Name(dtype), Elements(to)),
                     {x},
                     {},
                     {Gathered(x, to, strides, Dims(to.size(), 0))}});
  }
}

void AddReshapes(std::vector<Case>& cases, DType dtype) {
  const Array x = Numbers({4, 6, 5}, 8, dtype), large = Numbers({70001}, 9, dtype);
  Array r = x, r8 = large;
  r.dims = {2, 3, 20};
  r8.dims = {1, 1, 1, 1, 1, 1, 1, 70001};
  cases.push_back({"reshape", fmt::format("{} small", Name(dtype)), {x}, {}, {r}});
  cases.push_back({"reshape", fmt::format("{} large", Name(dtype)), {large}, {}, {r8}});
}

void AddConcats(std::vector<Case>& cases, DType dtype) {
  for (int64_t axis : {0, 1, 2, -1}) {
    const int64_t at = axis < 0 ? 2 : axis;
    const Dims extents = {3, 1, 4};
    Arrays parts;
    Dims dims = {3, 5, 7};
    int64_t begin = 0;
    dims[at] = std::accumulate(extents.begin(), extents.end(), int64_t{0});
    const Array whole = Numbers(dims, 10, dtype);
    for (int64_t extent : extents) {
      Dims part = dims, from(3, 0);
      part[at] = extent;
      from[at] = begin;
      parts.push_back(Gathered(whole, part, StridesOf(dims), from));
      begin += extent;
    }
    cases.push_back({"concat",
                     fmt::format("{} along {}", Name(dtype), axis),
                     parts,
                     Attributes({{"axis", axis}}),
                     {whole}});
  }
}

Array Product(const Array& a, const Array& b, bool ta, bool tb, const Dims& dims, DType dtype) {
  Array r = Typed(Constant(dims, 0), dtype);
  const int64_t n = dims.back(), m = dims[dims.size() - 2],
                k = ta ? a.dims[a.dims.size() - 2] : a.dims.back();
  for (int64_t i = 0; i < r.size(); ++i) {
    const int64_t batch = i / (m * n), row = i / n % m, column = i % n;
    for (int64_t s = 0; s < k; ++s)
      r.values[i] += a.values[batch * m * k + (ta ? s * m + row : row * k + s)] *
                     b.values[batch * n * k + (tb ? column * k + s : s * n + column)];
  }
  return r;
}

void AddDots(std::vector<Case>& cases, DType dtype) {
  struct Shape {
    Dims lead;
    int64_t m, n, k;
  };
  for (const Shape& s : std::vector<Shape>{{{}, 3, 5, 7},
                                           {{2}, 1, 1, 1},
                                           {{2, 3}, 9, 4, 33},
                                           {{1, 2, 1, 2, 1, 2}, 5, 17, 3},
                                           {{3}, 40, 65, 130}}) {
    for (int64_t ta : {0, 1}) {
      for (int64_t tb : {0, 1}) {
        Dims a = s.lead, b = s.lead, r = s.lead;
        a.insert(a.end(), {ta != 0 ? s.k : s.m, ta != 0 ? s.m : s.k});
        b.insert(b.end(), {tb != 0 ? s.n : s.k, tb != 0 ? s.k : s.n});
        r.insert(r.end(), {s.m, s.n});
        const Array x = As(Random(a, 21), dtype), y = As(Random(b, 22), dtype);
        for (const DType result : {dtype, DType::kF32}) {
          cases.push_back(
              {"dot",
               fmt::format("{} {}x{}x{} {}{} in {}", Name(dtype), s.m, s.n, s.k, ta, tb, Name(result)),
               {x, y},
               Attributes({{"transpose_a", ta}, {"transpose_b", tb}}),
               {Product(x, y, ta != 0, tb != 0, r, result)},
               {.reduction = double(s.k), .magnitude = 4}});
        }
      }
    }
  }
}

}  // namespace

std::vector<Case> ShapeCases() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kI64, DType::kU8}) {
    AddTransposes(cases, dtype);
    AddBoxes(cases, dtype);
    AddReshapes(cases, dtype);
  }
  for (const DType dtype : kFloats) AddDots(cases, dtype);
  return cases;
}

std::vector<Case> AnyAxisCases() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kI64, DType::kU8}) {
    AddBroadcasts(cases, dtype);
    AddConcats(cases, dtype);
  }
  return cases;
}

}  // namespace ft::conformance
