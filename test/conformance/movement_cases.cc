// fill, iota, copy, cast, broadcast, split, concat, embedding.
#include <cmath>
#include <numeric>

#include "runtime/base/cuda_workspace.h"
#include "runtime/base/flat_layout.h"
#include "runtime/base/workspace.h"
#include "test/conformance/case.h"

namespace ft::conformance {
namespace {

std::string Typed(DType dtype, const std::string& label) { return std::string(Name(dtype)) + " " + label; }

// The value rounded to f32, as an attribute is, and to the type from there.
void AddFills(std::vector<Case>& cases) {
  for (DType dtype : kFloats) {
    for (double value : {0.0, 0.25, -3.3, 70000.0}) {
      const double rounded = RoundTo(static_cast<float>(value), dtype);
      if (std::isinf(rounded)) continue;
      Array r = Constant({3, 70001}, rounded);
      r.dtype = dtype;
      cases.push_back({"fill", Typed(dtype, std::to_string(value)), {}, Attributes({{"value", value}}), {r}});
    }
  }
  for (DType dtype : {DType::kI32, DType::kI64}) {
    for (int64_t value : {0, -7}) {
      Array r = Constant({kAccumulatorWords}, static_cast<double>(value));
      r.dtype = dtype;
      cases.push_back({"fill", Typed(dtype, std::to_string(value)), {}, Attributes({{"value", value}}), {r}});
    }
  }
  for (int64_t count : {1, 7, 70001}) {
    Array ids = Constant({count}, 0);
    ids.dtype = DType::kI32;
    std::iota(ids.values.begin(), ids.values.end(), 0.0);
    cases.push_back({"iota", std::to_string(count), {}, {}, {ids}});
  }
}

void AddCopies(std::vector<Case>& cases, DType dtype) {
  const Array x = As(Random({3, 5, 7}, 5), dtype);
  cases.push_back({"copy", Typed(dtype, "small"), {x}, {}, {x}});
  const Array large = As(Random({511, 1031}, 6), dtype);
  cases.push_back({"copy", Typed(dtype, "large"), {large}, {}, {large}});
  for (int64_t columns : {211, 216}) {
    for (int64_t copies : {1, 3, 200}) {
      Array r = As(Constant({copies, 5, columns}, 0), dtype);
      const Array part = As(Random({5, columns}, 8), dtype);
      for (int64_t i = 0; i < r.size(); ++i) r.values[i] = part.values[i % part.size()];
      const std::string label = std::to_string(copies) + " times " + std::to_string(columns);
      cases.push_back({"broadcast", Typed(dtype, label), {part}, {}, {r}});
    }
  }
}

void AddSplit(std::vector<Case>& cases, DType dtype, int64_t rows, const std::vector<int64_t>& widths) {
  const int64_t columns = std::accumulate(widths.begin(), widths.end(), int64_t{0});
  const Array whole = As(Random({rows, columns}, 9), dtype);
  Arrays parts;
  int64_t begin = 0;
  for (int64_t width : widths) {
    Array& part = parts.emplace_back(As(Constant({rows, width}, 0), dtype));
    for (int64_t i = 0; i < part.size(); ++i) {
      part.values[i] = whole.values[i / width * columns + begin + i % width];
    }
    begin += width;
  }
  const std::string label = Typed(dtype, std::to_string(rows) + " rows, " + std::to_string(widths.size()) +
                                             " parts of " + std::to_string(widths[0]) + " ...");
  cases.push_back({"split", label, {whole}, {}, parts});
  cases.push_back({"concat", label, parts, {}, {whole}});
}

void AddSplits(std::vector<Case>& cases, DType dtype) {
  for (int64_t rows : {1, 6, 700}) AddSplit(cases, dtype, rows, {3, 64, 133});
  AddSplit(cases, dtype, 517, {64, 128, 64});
  AddSplit(cases, dtype, 33, {4, 12, 20});
  AddSplit(cases, dtype, 33, {2, 6});
  AddSplit(cases, dtype, 33, {77});
  AddSplit(cases, dtype, 5, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18});
}

// f32, bf16 or f16 in, any of them out: the middle of two neighbours, what is too large, what is subnormal.
void AddCasts(std::vector<Case>& cases) {
  for (DType from : kFloats) {
    for (DType to : kFloats) {
      for (int64_t count : {1, 5, 1031, 70001}) {
        Array x = Random({count}, 15, 3.0);
        for (int64_t i = 0; i < count; ++i) {
          if (i % 7 == 1) x.values[i] *= 0x1p-16;
          if (i % 7 == 2) x.values[i] = 1 + static_cast<double>(i % 32) * 0x1p-9;   // ties of bf16
          if (i % 7 == 3) x.values[i] = 1 + static_cast<double>(i % 32) * 0x1p-12;  // of f16
          if (i % 7 == 4) x.values[i] *= 0x1p-24;
        }
        x = As(x, from);
        const std::string label = std::string(Name(from)) + " to " + std::string(Name(to));
        cases.push_back({"cast", label + " of " + std::to_string(count), {x}, {}, {As(x, to)}});
      }
    }
  }
}

// The table's gradient has a type of its own.
void AddEmbeddings(std::vector<Case>& cases, DType dtype) {
  struct Shape {
    int64_t batch, positions, vocabulary, width;
  };
  // Also: few ids, each at many positions; more positions than a tile of a sort; ids of many digits.
  for (const Shape& s : {Shape{1, 1, 1, 1},
                         {2, 7, 11, 5},
                         {3, 64, 50, 300},
                         {1, 600, 3, 24},
                         {2, 2500, 300, 8},
                         {1, 40, 70000, 1}}) {
    const Array ids = RandomIds({s.batch, s.positions}, s.vocabulary, 3),
                table = As(Random({s.vocabulary, s.width}, 4), dtype);
    Array r = As(Constant({s.batch, s.positions, s.width}, 0), dtype);
    for (int64_t i = 0; i < r.size(); ++i) {
      r.values[i] = table.values[static_cast<int64_t>(ids.values[i / s.width]) * s.width + i % s.width];
    }
    const std::string label = Typed(dtype, std::to_string(ids.size()) + " of " +
                                               std::to_string(s.vocabulary) + "x" + std::to_string(s.width));
    cases.push_back({"embedding", label, {ids, table}, {}, {r}});
    const Array dy = As(Random(r.dims, 12), dtype);
    for (DType reduce : kFloats) {
      for (const Array& start : {Absent(), As(Random(table.dims, 13), reduce)}) {
        Array sum = start.present ? start : As(Constant(table.dims, 0), reduce);
        for (int64_t i = 0; i < dy.size(); ++i) {
          sum.values[static_cast<int64_t>(ids.values[i / s.width]) * s.width + i % s.width] += dy.values[i];
        }
        cases.push_back(
            {"embedding_grad",
             label + " to " + std::string(Name(reduce)) + (start.present ? " into" : ""),
             {ids, dy, start},
             {},
             {sum},
             {.reduction = double(ids.size()),
              .tied = {2},
              .cuda_workspace_bytes = cuda_workspace::EmbeddingGrad(ids.size(), s.vocabulary, s.width)}});
      }
    }
  }
}

// The gradient leaves out ids that the table does not have: targets that do not count.
void AddForeignIds(std::vector<Case>& cases, DType dtype, DType reduce, int64_t positions, int64_t vocabulary,
                   int64_t width) {
  Array ids = RandomIds({positions}, vocabulary, 3);
  for (int64_t i = 0; i < positions; i += 4) ids.values[i] = i % 8 == 0 ? -1 : double(vocabulary + i);
  const Array dy = As(Random({positions, width}, 12), dtype);
  Array sum = As(Constant({vocabulary, width}, 0), reduce);
  for (int64_t i = 0; i < dy.size(); ++i) {
    const int64_t id = static_cast<int64_t>(ids.values[i / width]);
    if (id >= 0 && id < vocabulary) sum.values[id * width + i % width] += dy.values[i];
  }
  cases.push_back(
      {"embedding_grad",
       Typed(dtype, "foreign ids, of " + std::to_string(positions) + ", to " + std::string(Name(reduce))),
       {ids, dy, Absent()},
       {},
       {sum},
       {.reduction = double(positions),
        .tied = {2},
        .cuda_workspace_bytes = cuda_workspace::EmbeddingGrad(positions, vocabulary, width)}});
}

}  // namespace

std::vector<Case> MovementCases() {
  std::vector<Case> cases;
  AddFills(cases);
  AddCasts(cases);
  for (DType dtype : kFloats) {
    AddCopies(cases, dtype);
    AddSplits(cases, dtype);
    AddEmbeddings(cases, dtype);
    // A GPU sorts so many in several rounds of its block that scans counters.
    if (dtype == DType::kBF16) AddForeignIds(cases, dtype, DType::kF32, 70000, 999, 8);
    for (DType reduce : kFloats) {
      AddForeignIds(cases, dtype, reduce, 90, 11, 16);
    }
  }
  for (Case& c : AnyAxisCases()) cases.push_back(std::move(c));
  return cases;
}

}  // namespace ft::conformance
