// gather_elements, scatter_add_elements, cumsum, argsort, histogram, grouped_dot, grouped_dot_grad.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "fmt/format.h"
#include "test/conformance/case.h"

namespace ft::conformance {
namespace {

using Dims = std::vector<int64_t>;

// From -1 to one more than there are: the ends name no element.
Array Ids(const Dims& dims, int64_t limit, uint64_t seed) {
  Array ids = RandomIds(dims, limit + 2, seed);
  for (double& id : ids.values) id -= 1;
  return ids;
}

Dims With(Dims lead, int64_t last) {
  lead.push_back(last);
  return lead;
}

struct RowShape {
  Dims lead;
  int64_t columns, ids;
};
const std::vector<RowShape> kRows = {{{}, 1, 1},     {{}, 7, 3},  {{3}, 5, 9}, {{2, 1, 2, 1, 3}, 4, 2},
                                     {{70}, 257, 2}, {{5}, 3, 70}};

void AddElements(std::vector<Case>& cases, DType dtype) {
  for (const RowShape& s : kRows) {
    const Array x = Numbers(With(s.lead, s.columns), 1, dtype), ids = Ids(With(s.lead, s.ids), s.columns, 2);
    Array r = Typed(Constant(ids.dims, 0), dtype);
    for (int64_t i = 0; i < r.size(); ++i) {
      const auto id = static_cast<int64_t>(ids.values[i]);
      if (id >= 0 && id < s.columns) r.values[i] = x.values[i / s.ids * s.columns + id];
    }
    cases.push_back(
        {"gather_elements", fmt::format("{} {} of {}", Name(dtype), s.ids, s.columns), {x, ids}, {}, {r}});
    if (!IsFloat(dtype)) continue;
    const Array y = Numbers(ids.dims, 3, dtype);
    for (const DType result : {dtype, DType::kF32}) {
      Array sums = Typed(Constant(x.dims, 0), result);
      for (int64_t i = 0; i < y.size(); ++i) {
        const auto id = static_cast<int64_t>(ids.values[i]);
        if (id >= 0 && id < s.columns) sums.values[i / s.ids * s.columns + id] += y.values[i];
      }
      cases.push_back({"scatter_add_elements",
                       fmt::format("{} {} into {} of {}", Name(dtype), s.ids, s.columns, Name(result)),
                       {y, ids},
                       {},
                       {sums},
                       {.reduction = double(s.ids), .magnitude = 4}});
    }
  }
}

void AddScans(std::vector<Case>& cases, DType dtype) {
  for (const Dims& dims : {Dims{1}, Dims{7}, Dims{3, 5}, Dims{2, 1, 2, 1, 2, 1, 2, 9}, Dims{4, 300}}) {
    const int64_t columns = dims.back();
    const Array x = Numbers(dims, 4, dtype);
    for (int64_t reverse : {0, 1}) {
      Array r = x;
      for (int64_t row = 0; row < x.rows(); ++row) {
        double sum = 0;
        for (int64_t i = 0; i < columns; ++i) {
          const int64_t at = row * columns + (reverse != 0 ? columns - 1 - i : i);
          r.values[at] = sum += x.values[at];
        }
      }
      cases.push_back({"cumsum",
                       fmt::format("{} of {} {}", Name(dtype), x.size(), reverse),
                       {x},
                       Attributes({{"reverse", reverse}}),
                       {r},
                       {.reduction = double(columns), .magnitude = 4}});
    }
    Array equal = x;  // so that some of a row are equal
    for (double& value : equal.values) value = std::floor(value / 2);
    for (int64_t descending : {0, 1}) {
      for (const int64_t wanted : {columns, (columns + 1) / 2}) {
        Dims to = dims;
        to.back() = wanted;
        Array r = Typed(Constant(to, 0), DType::kI32);
        for (int64_t row = 0; row < x.rows(); ++row) {
          std::vector<int64_t> order(columns);
          std::iota(order.begin(), order.end(), int64_t{0});
          std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
            const double va = equal.values[row * columns + a], vb = equal.values[row * columns + b];
            return descending != 0 ? va > vb : va < vb;
          });
          for (int64_t k = 0; k < wanted; ++k) r.values[row * wanted + k] = static_cast<double>(order[k]);
        }
        cases.push_back({"argsort",
                         fmt::format("{} {} of {} {}", Name(dtype), wanted, x.size(), descending),
                         {equal},
                         Attributes({{"descending", descending}}),
                         {r}});
      }
    }
  }
}

void AddHistograms(std::vector<Case>& cases) {
  for (const auto& [dims, counts] :
       std::vector<std::pair<Dims, int64_t>>{{{1}, 1}, {{3, 5}, 4}, {{70, 33}, 9}, {{5}, 700}}) {
    const Array ids = Ids(dims, counts, 5);
    Array r = Typed(Constant({counts}, 0), DType::kI32);
    for (double id : ids.values) {
      if (id >= 0 && id < static_cast<double>(counts)) r.values[static_cast<size_t>(id)] += 1;
    }
    cases.push_back({"histogram", fmt::format("{} into {}", ids.size(), counts), {ids}, {}, {r}});
  }
}

struct Groups {
  int64_t rows, k, n;
  std::vector<double> ends;

  // Rows of a group.
  std::pair<int64_t, int64_t> Of(size_t group) const {
    double begin = 0, end = 0;
    for (size_t g = 0; g <= group; ++g) {
      begin = end;
      end = std::clamp(ends[g], begin, double(rows));
    }
    return {static_cast<int64_t>(begin), static_cast<int64_t>(end)};
  }
};

void AddGroup(std::vector<Case>& cases, const Groups& s, DType dtype, DType result) {
  const auto groups = static_cast<int64_t>(s.ends.size());
  const Array x = As(Random({s.rows, s.k}, 6), dtype), dy = As(Random({s.rows, s.n}, 7), dtype);
  Array ends = Typed(Constant({groups}, 0), DType::kI32);
  ends.values = s.ends;
  const std::string label =
      fmt::format("{} {}x{}x{} in {} to {}", Name(dtype), s.rows, s.n, s.k, groups, Name(result));
  for (int64_t transposed : {0, 1}) {
    const Array w = As(Random(transposed != 0 ? Dims{groups, s.n, s.k} : Dims{groups, s.k, s.n}, 8), dtype);
    Array r = Typed(Constant({s.rows, s.n}, 0), result);
    for (size_t g = 0; g < s.ends.size(); ++g) {
      for (int64_t row = s.Of(g).first; row < s.Of(g).second; ++row) {
        for (int64_t i = 0; i < s.k * s.n; ++i) {
          const int64_t a = transposed != 0 ? i % s.k : i / s.n, b = transposed != 0 ? i / s.k : i % s.n;
          r.values[row * s.n + b] += x.values[row * s.k + a] * w.values[g * s.k * s.n + i];
        }
      }
    }
    cases.push_back({"grouped_dot",
                     label,
                     {x, w, ends},
                     Attributes({{"transpose_b", transposed}}),
                     {r},
                     {.reduction = double(s.k), .magnitude = 4}});
  }
  Array dw = Typed(Constant({groups, s.k, s.n}, 0), result);
  for (size_t g = 0; g < s.ends.size(); ++g) {
    for (int64_t row = s.Of(g).first; row < s.Of(g).second; ++row) {
      for (int64_t i = 0; i < s.k * s.n; ++i)
        dw.values[g * s.k * s.n + i] += x.values[row * s.k + i / s.n] * dy.values[row * s.n + i % s.n];
    }
  }
  const Rules rules = {.reduction = double(s.rows), .magnitude = 4, .tied = {3}};
  cases.push_back({"grouped_dot_grad", label, {x, dy, ends, Absent()}, {}, {dw}, rules});
  const Array acc = As(Random(dw.dims, 9), result);
  for (int64_t i = 0; i < dw.size(); ++i) dw.values[i] += acc.values[i];
  cases.push_back({"grouped_dot_grad", label + " acc", {x, dy, ends, acc}, {}, {dw}, rules});
}

}  // namespace

std::vector<Case> IndexCases() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kI32, DType::kI64}) {
    AddElements(cases, dtype);
    AddScans(cases, dtype);
  }
  AddElements(cases, DType::kU8);
  AddHistograms(cases);
  for (const DType dtype : kFloats) {
    for (const DType result : {dtype, DType::kF32}) {
      AddGroup(cases, {1, 1, 1, {1}}, dtype, result);
      AddGroup(cases, {7, 3, 5, {2, 2, 7}}, dtype, result);         // one has no rows
      AddGroup(cases, {33, 20, 9, {5, 4, 40, 12}}, dtype, result);  // not ascending, and too many
      AddGroup(cases, {150, 70, 66, {80, 100}}, dtype, result);     // rows behind the last
    }
  }
  return cases;
}

}  // namespace ft::conformance
