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

  ClusterMaker(int64_t rows, int64_t columns) { Space(rows, columns, columns); }
  void Space(int64_t rows, int64_t columns, int64_t last) {
    body_.rows = rows;
    body_.columns = columns;
    body_.last_columns = last;
  }

  // In f32 if it is of 16 bits. All inputs before any op.
  uint32_t Input(DType dtype, int64_t rows, bool columns) {
    body_.inputs.push_back({.dtype = dtype, .rows = rows, .columns = columns});
    return static_cast<uint32_t>(body_.inputs.size() - 1);
  }
  uint32_t Whole(DType dtype) { return Input(dtype, body_.rows, true); }
  uint32_t Wide(uint32_t x) { return Convert(x, DType::kF32); }

  uint32_t Of(Elementwise function, std::vector<uint32_t> operands, std::vector<double> parameters = {},
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

  void Output(uint32_t value, bool columns = true) {
    body_.outputs.push_back({.value = value, .dtype = body_.dtype(value), .columns = columns});
  }
  // Rounded to `dtype`.
  void Output(uint32_t value, DType dtype, bool columns = true) { Output(Convert(value, dtype), columns); }
  void OverRows(ReductionKind kind, uint32_t value, DType dtype) {
    body_.outputs.push_back(
        {.value = value, .dtype = dtype, .columns = true, .over_rows = true, .reduction = kind});
  }

  const ClusterBody& body() const { return body_; }

 private:
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
