// Elements of rows chosen, put in order and counted by integers; rows are those of the last dimension. All
// functions enqueue on `stream` and return a cudaError_t as int, 0 for success. Results depend on no order in
// which threads arrive.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"
#include "runtime/base/dtype.h"

namespace ft::cuda {

// x [rows, x_columns], r [rows, r_columns]; ids has the shape of r to gather and that of x to scatter.
struct ElementsArgs {
  const void* x;
  const int32_t* ids;
  void* r;
  DType result;  // of r
  int64_t rows, x_columns, r_columns;
};
// r[row, k] = x[row, ids[row, k]], 0 for an id that names no element. An element is 1, 2, 4 or 8 bytes.
int GatherElements(const ElementsArgs& args, int element_bytes, StreamHandle stream);
// r = 0, then r[row, ids[row, k]] += x[row, k] but for ids that name no element: those of one id are added in
// order, in f64, and rounded once. x and r are of float types.
int ScatterAddElements(const ElementsArgs& args, DType dtype, StreamHandle stream);

struct RowsArgs {
  const void* x;
  void* r;
  DType result;  // of r
  int64_t rows, columns, r_columns;
  bool backwards;
};
// r[row, i] = x[row, 0] + ... + x[row, i], or x[row, i] + ... + x[row, columns - 1]. Floats are added in f64
// and rounded once, to any float type; integers wrap around. The order of additions depends on shapes alone.
int Cumsum(const RowsArgs& args, DType dtype, StreamHandle stream);
// r[row, 0], r[row, 1], ..., i32, are the ids of the first r_columns elements in ascending order, or in
// descending. Of equal elements the first comes first; NaN is above everything.
int Argsort(const RowsArgs& args, DType dtype, StreamHandle stream);

// r[i] = how many of the ids are i.
struct HistogramArgs {
  const int32_t* ids;
  int32_t* r;
  int64_t elements, counts;
};
int Histogram(const HistogramArgs& args, StreamHandle stream);

}  // namespace ft::cuda
