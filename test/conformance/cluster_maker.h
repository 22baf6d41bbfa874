// Bodies of clusters, written by hand.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/base/cluster.h"

namespace ft::conformance {

// A body under construction; numbers are those of values.
class ClusterMaker {
 public:
  using Op = ClusterBody::Op;
  using Values = std::vector<uint32_t>;

  ClusterMaker(int64_t rows, int64_t columns) { Space(rows, columns, columns); }
  void Space(int64_t rows, int64_t columns, int64_t last) {
    body_.rows = rows;
    body_.columns = columns;
    body_.last_columns = last;
  }

  // Read at these places. All inputs before any op.
  uint32_t Input(DType dtype, int64_t elements, ClusterBody::Place place) {
    body_.inputs.push_back({dtype, elements});
    return Read(static_cast<uint32_t>(body_.inputs.size() - 1), std::move(place));
  }
  uint32_t Read(uint32_t input, ClusterBody::Place place) {
    body_.reads.push_back({input, std::move(place)});
    return static_cast<uint32_t>(body_.reads.size() - 1);
  }
  // Every `rows` rows again, one for each column or one a row.
  uint32_t Input(DType dtype, int64_t rows, bool columns) {
    return Input(dtype, ElementsOf(rows, columns), PlaceOf(rows, columns));
  }
  uint32_t Whole(DType dtype) { return Input(dtype, body_.rows, true); }
  uint32_t Wide(uint32_t x) { return Convert(x, DType::kF32); }

  uint32_t Of(Elementwise function, Values operands, std::vector<double> parameters = {},
              DType dtype = DType::kF32) {
    return Add({.function = function,
                .operands = std::move(operands),
                .parameters = std::move(parameters),
                .dtype = dtype});
  }
  uint32_t Convert(uint32_t x, DType dtype) {
    return Add({.kind = Op::Kind::kConvert, .operands = {x}, .parameters = {}, .dtype = dtype});
  }
  uint32_t Fill(double number) {
    return Add({.kind = Op::Kind::kFill, .operands = {}, .parameters = {number}, .dtype = DType::kF32});
  }
  uint32_t Reduce(ReductionKind kind, uint32_t x) {
    return Add({.kind = Op::Kind::kReduce,
                .reduction = kind,
                .operands = {x},
                .parameters = {},
                .dtype = body_.dtype(x)});
  }

  uint32_t Iota(int64_t rows, bool columns) {
    return Add({.kind = Op::Kind::kIota,
                .operands = {},
                .parameters = {},
                .dtype = DType::kI32,
                .elements = ElementsOf(rows, columns),
                .place = PlaceOf(rows, columns)});
  }

  // Of a generator: an input, and no value.
  uint32_t State() {
    body_.inputs.push_back({DType::kI64, 3, true});
    return static_cast<uint32_t>(body_.inputs.size() - 1);
  }
  uint32_t RandomBits(uint32_t state, int64_t rows, bool columns, uint32_t draw) {
    return Add({.kind = Op::Kind::kRandomBits,
                .operands = {state},
                .parameters = {},
                .dtype = DType::kI32,
                .draw = draw,
                .elements = ElementsOf(rows, columns),
                .place = PlaceOf(rows, columns)});
  }

  void Output(uint32_t value, bool columns = true) {
    const bool one_column = body_.columns == 1;
    body_.results.push_back({body_.dtype(value), ElementsOf(body_.rows, columns || one_column)});
    body_.outputs.push_back({.value = value, .result = Last(), .place = PlaceOf(body_.rows, columns)});
  }
  // Rounded to `dtype`.
  void Output(uint32_t value, DType dtype, bool columns = true) { Output(Convert(value, dtype), columns); }
  // Of a sum, added to an input.
  void OverRows(uint32_t value, DType dtype) {
    body_.inputs.push_back({dtype, body_.columns});
    OverRows(ReductionKind::kSum, value, dtype);
    body_.outputs.back().acc = static_cast<int64_t>(body_.inputs.size() - 1);
  }
  void OverRows(ReductionKind kind, uint32_t value, DType dtype) {
    body_.results.push_back({dtype, body_.columns});
    body_.outputs.push_back({.value = value,
                             .result = Last(),
                             .place = {.column_stride = 1},
                             .over_rows = true,
                             .reduction = kind});
  }
  // Parts of one result of twice as many columns.
  void Halves(uint32_t first, uint32_t second) {
    body_.results.push_back({body_.dtype(first), 2 * body_.rows * body_.columns});
    ClusterBody::Place place = {.steps = {{1, body_.rows, 2 * body_.columns}}, .column_stride = 1};
    body_.outputs.push_back({.value = first, .result = Last(), .place = place});
    place.begin = body_.columns;
    body_.outputs.push_back({.value = second, .result = Last(), .place = place});
  }

  // Sums of such parts, together perhaps added to an input.
  void HalvesOverRows(uint32_t first, uint32_t second, DType dtype, bool is_added) {
    const ClusterBody::Buffer sums = {dtype, 2 * body_.columns};
    body_.results.push_back(sums);
    if (is_added) body_.inputs.push_back(sums);
    ClusterBody::Output output = {
        .value = first, .result = Last(), .place = {.column_stride = 1}, .over_rows = true};
    output.acc = is_added ? static_cast<int64_t>(body_.inputs.size() - 1) : -1;
    body_.outputs.push_back(output);
    output.value = second;
    output.place.begin = body_.columns;
    body_.outputs.push_back(output);
  }

  const ClusterBody& body() const { return body_; }

 private:
  uint32_t Last() const { return static_cast<uint32_t>(body_.results.size() - 1); }
  int64_t ElementsOf(int64_t rows, bool columns) const {
    if (!columns) return rows;
    return rows == body_.rows ? body_.elements() : rows * body_.columns;
  }
  ClusterBody::Place PlaceOf(int64_t rows, bool columns) const {
    ClusterBody::Place place = {.column_stride = columns ? 1 : 0};
    if (rows != 1 || (rows == body_.rows && columns)) place.steps = {{1, rows, columns ? body_.columns : 1}};
    return place;
  }
  uint32_t Add(Op op) {
    body_.ops.push_back(std::move(op));
    return static_cast<uint32_t>(body_.values() - 1);
  }

  ClusterBody body_;
};

// GELU in its tanh form of `elements`, and its gradient of (x, dy), as composites have them.
ClusterBody GeluBody(int64_t elements, DType dtype);
ClusterBody GeluGradBody(int64_t elements, DType dtype);

}  // namespace ft::conformance
