// fill, iota, copy, broadcast, split, concat, embedding, sum_leading.
#include <numeric>

#include "runtime/base/flat_layout.h"
#include "runtime/base/workspace.h"
#include "test/conformance/case.h"

namespace ft::conformance {
namespace {

void AddCopies(std::vector<Case>& cases) {
  const Array x = Random({3, 5, 7}, 5);
  cases.push_back({"copy", "small", {x}, {}, {x}});
  const Array large = Random({511, 1031}, 6);
  cases.push_back({"copy", "large", {large}, {}, {large}});
  cases.push_back({"fill", "0.25", {}, Attributes({{"value", 0.25}}), {Constant({3, 70001}, 0.25)}});
  for (int64_t count : {1, 7, 70001}) {
    Array ids = Constant({count}, 0);
    ids.dtype = DType::kI32;
    std::iota(ids.values.begin(), ids.values.end(), 0.0);
    cases.push_back({"iota", std::to_string(count), {}, {}, {ids}});
  }
  Array zeros = Constant({kAccumulatorWords}, 0);
  zeros.dtype = DType::kI64;
  cases.push_back({"fill", "integers", {}, Attributes({{"value", int64_t{0}}}), {zeros}});
  for (int64_t copies : {1, 3, 200}) {
    Array r = Constant({copies, 5, 211}, 0);
    const Array part = Random({5, 211}, 8);
    for (int64_t i = 0; i < r.size(); ++i) r.values[i] = part.values[i % part.size()];
    cases.push_back({"broadcast", std::to_string(copies), {part}, {}, {r}});
  }
}

void AddSplits(std::vector<Case>& cases) {
  for (int64_t rows : {1, 6, 700}) {
    const Array whole = Random({rows, 3 + 64 + 133}, 9);
    Arrays parts = {Constant({rows, 3}, 0), Constant({rows, 64}, 0), Constant({rows, 133}, 0)};
    for (int64_t row = 0; row < rows; ++row) {
      int64_t column = 0;
      for (Array& part : parts) {
        for (int64_t j = 0; j < part.last(); ++j)
          part.values[row * part.last() + j] = whole.values[row * 200 + column++];
      }
    }
    cases.push_back({"split", std::to_string(rows), {whole}, {}, parts});
    cases.push_back({"concat", std::to_string(rows), parts, {}, {whole}});
  }
}

void AddEmbeddings(std::vector<Case>& cases) {
  struct Shape {
    int64_t batch, positions, vocabulary, width;
  };
  for (const Shape& s : {Shape{1, 1, 1, 1}, {2, 7, 11, 5}, {3, 64, 50, 300}}) {
    const Array ids = RandomIds({s.batch, s.positions}, s.vocabulary, 3),
                table = Random({s.vocabulary, s.width}, 4);
    Array r = Constant({s.batch, s.positions, s.width}, 0);
    for (int64_t i = 0; i < r.size(); ++i) {
      r.values[i] = table.values[static_cast<int64_t>(ids.values[i / s.width]) * s.width + i % s.width];
    }
    const std::string label = std::to_string(s.width);
    cases.push_back({"embedding", label, {ids, table}, {}, {r}});
    const Array dy = Random(r.dims, 12), acc = Random(table.dims, 13);
    for (const Array& start : {Absent(), acc}) {
      Array sum = start.present ? start : Constant(table.dims, 0);
      for (int64_t i = 0; i < dy.size(); ++i) {
        sum.values[static_cast<int64_t>(ids.values[i / s.width]) * s.width + i % s.width] += dy.values[i];
      }
      cases.push_back({"embedding_grad",
                       label + (start.present ? " into" : ""),
                       {ids, dy, start},
                       {},
                       {sum},
                       {.reduction = double(ids.size()), .tied = {2}}});
    }
  }
}

void AddSums(std::vector<Case>& cases) {
  struct Shape {
    std::vector<int64_t> dims, result;
  };
  for (const Shape& s : {Shape{{1, 1}, {1}},
                         {{3, 5}, {5}},
                         {{4, 9, 13}, {9, 13}},
                         {{33, 17, 70}, {70}},
                         {{4, 64, 768}, {64, 768}},
                         {{300, 768}, {768}}}) {
    const Array x = Random(s.dims, 21);
    Array r = Constant(s.result, 0);
    for (int64_t i = 0; i < x.size(); ++i) r.values[i % r.size()] += x.values[i];
    const int64_t terms = x.size() / r.size();
    cases.push_back({"sum_leading",
                     std::to_string(x.size()),
                     {x},
                     {},
                     {r},
                     {.reduction = double(terms), .workspace_bytes = SumLeadingWorkspace(r.size())}});
  }
}

}  // namespace

std::vector<Case> MovementCases() {
  std::vector<Case> cases;
  AddCopies(cases);
  AddSplits(cases);
  AddEmbeddings(cases);
  AddSums(cases);
  return cases;
}

}  // namespace ft::conformance
