// A cluster: ops that run as one kernel, over a space of rows and columns.
//
// A body is a list of values. The first are its inputs, the others are what its ops make, one each. At a
// place (row, column) of the space an input is its element (row % rows, column), or (row % rows) where it has
// no columns; an op works on the values of its operands at that place. A reduction over the columns has one
// value for a row. So every value can be computed anywhere, and nothing but inputs and outputs need be in
// memory.
//
// Every value is rounded to its type where it is made. Sums and extremes over the columns of a row are taken
// by 64 lanes: lane i combines columns i, i + 64 ... in order, beginning with what changes nothing; then
// lanes i and i + 16 of each half are combined, the halves, and lanes i and i + 8, 4, 2, 1. Outputs over
// rows: each block of BlockRows() rows combines its rows in order, and blocks are combined in order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/cluster_op.h"
#include "runtime/base/dtype.h"
#include "runtime/base/elementwise.h"
#include "runtime/base/reduction_kind.h"

namespace ft {

struct ClusterBody {
  // Elements in f32, bf16, f16, i32 or truth values (kU8).
  struct Input {
    DType dtype = DType::kF32;
    int64_t rows = 1;      // divides those of the space
    bool columns = false;  // an element for each column, or one
  };
  struct Op {
    using Kind = ClusterOpKind;
    Kind kind = Kind::kElementwise;
    Elementwise function = Elementwise::kAdd;
    ReductionKind reduction = ReductionKind::kSum;
    std::vector<uint32_t> operands;  // values before this one
    std::vector<double> parameters;
    DType dtype = DType::kF32;
  };
  struct Output {
    uint32_t value = 0;
    DType dtype = DType::kF32;
    bool columns = false;    // written for each column, or once a row
    bool over_rows = false;  // one row: `reduction` of all
    ReductionKind reduction = ReductionKind::kSum;
  };

  int64_t rows = 1, columns = 1;
  int64_t last_columns = 1;  // of the last row; others have `columns`
  std::vector<Input> inputs;
  std::vector<Op> ops;
  std::vector<Output> outputs;

  size_t values() const { return inputs.size() + ops.size(); }
  DType dtype(size_t value) const {
    return value < inputs.size() ? inputs[value].dtype : ops[value - inputs.size()].dtype;
  }
  // Of an input or an output in memory.
  int64_t Elements(int64_t of_rows, bool of_columns) const {
    if (!of_columns) return of_rows;
    return of_rows == rows ? (rows - 1) * columns + last_columns : of_rows * columns;
  }
  // Rows whose outputs over rows are combined first, by the shape alone: there are at most 64 such blocks.
  int64_t BlockRows() const;
  int64_t Blocks() const { return (rows + BlockRows() - 1) / BlockRows(); }
  // Of the partial results of an output over rows: for each block a row of 4-byte numbers.
  int64_t PartialBytesEach() const;
  // Where in the workspace those of each such output lie, of `each` bytes, and behind the last the bytes of
  // all. Multiples of 64 bytes.
  std::vector<int64_t> PartialOffsets(int64_t each) const;
  int64_t PartialBytes() const { return PartialOffsets(PartialBytesEach()).back(); }
};

// Code of a body, for one kind of machine. For a CPU machine code, for anywhere in memory, without symbols or
// writable data (compiler/codegen/kernel.h); for GPUs the text of a PTX module (ptx_kernel.h).
struct ClusterCode {
  static constexpr char kPtx[] = "ptx";
  struct Launch {
    uint32_t blocks = 0, threads = 0;
  };

  std::string target;  // "x86-64-v3", kPtx
  std::string bytes;
  // Of a CPU: where in it the entries are; combine is that of bodies with outputs over rows.
  uint64_t kernel = 0, combine = 0;
  // Of GPUs: how the entries are launched; no blocks: there is no such entry.
  Launch kernel_launch = {}, combine_launch = {};
  int64_t partial_bytes = 0;  // of each output over rows
};

// A body, the code that there is of it, and what a device made of that: kernels are made by one thread.
struct Cluster {
  ClusterBody body;
  std::vector<ClusterCode> codes;
  mutable std::shared_ptr<const void> loaded;
};

// Says what is wrong with a body that cannot be run.
absl::Status CheckClusterBody(const ClusterBody& body);

// Whether an output may be where an input is: then an element is read where, and before, it is written.
bool MayTakePlaceOf(const ClusterBody& body, const ClusterBody::Input& input,
                    const ClusterBody::Output& output);

// Whether each value has columns of its own, or one number for a row: by value.
std::vector<bool> HasColumns(const ClusterBody& body);
// Reductions on the longest way to each value, itself included: by value.
std::vector<int> LevelsOf(const ClusterBody& body);

}  // namespace ft
