// A cluster: ops that run as one kernel, over a space of rows and columns.
//
// A body is a list of values. The first are what is read of its inputs, the others are what its ops make, one
// each. At a place (row, column) of the space a read is one element of its input; an op works on the values
// of its operands at that place. A reduction over the columns has one value for a row. So every value can be
// computed anywhere, and nothing but inputs and results need be in memory.
//
// Random bits are the words of Philox (philox.h) with the seed and the micro-step of the state, elements
// numbered as rank * elements of the draw + the element of the place, and the stream that an instruction has
// for the draw: bodies that differ in streams alone are one. An iota has at a place the number of the element
// that belongs to it.
//
// Every value is rounded to its type where it is made. Sums and extremes over the columns of a row are taken
// by 64 lanes: lane i combines columns i, i + 64 ... in order, beginning with what changes nothing; then
// lanes i and i + 16 of each half are combined, the halves, and lanes i and i + 8, 4, 2, 1. Outputs over
// rows: each block of BlockRows() rows combines its rows in order, and blocks are combined in order. What a
// sum over rows is added to, `acc`, is added when it is whole and rounded, each element to that in its place.
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
  // Which element of a tensor belongs to a place of the space:
  //   begin + sum over steps of (row / every % extent) * stride + column * column_stride
  struct Place {
    struct Step {
      int64_t every = 1, extent = 1, stride = 1;
      bool operator==(const Step&) const = default;
    };
    int64_t begin = 0;
    std::vector<Step> steps = {};
    int64_t column_stride = 0;  // 0: one element for all columns

    int64_t RowBegin(int64_t row) const;
    bool operator==(const Place&) const = default;
  };
  // A tensor of f32, bf16, f16, i32, i64 or truth values (kU8).
  struct Buffer {
    DType dtype = DType::kF32;
    int64_t elements = 1;
    bool state = false;  // of a generator: seed, micro-step, rank, from which random bits are drawn
    bool operator==(const Buffer&) const = default;
  };
  struct Read {
    uint32_t input = 0;
    Place place = {};
  };
  struct Op {
    using Kind = ClusterOpKind;
    Kind kind = Kind::kElementwise;
    Elementwise function = Elementwise::kAdd;
    ReductionKind reduction = ReductionKind::kSum;
    std::vector<uint32_t> operands =
        {};  // values before this one; of random bits the input that is the state
    std::vector<double> parameters = {};
    DType dtype = DType::kF32;
    // Of random bits: which draw of the body they are. Of these and of an iota: of how many elements they
    // are, and which a place has.
    uint32_t draw = 0;
    int64_t elements = 0;
    Place place = {};
  };
  struct Output {
    uint32_t value = 0;
    uint32_t result = 0;
    Place place = {};
    bool over_rows = false;  // `reduction` of all rows, an element for each column, beside each other
    ReductionKind reduction = ReductionKind::kSum;
    int64_t acc = -1;  // of a sum over rows: the input, as the result, that it is added to; -1: none
  };

  int64_t rows = 1, columns = 1;
  int64_t last_columns = 1;  // of the last row; others have `columns`, and so has it but in flat bodies
  std::vector<Buffer> inputs;
  std::vector<Read> reads;
  std::vector<Op> ops;
  std::vector<Output> outputs;
  std::vector<Buffer> results;

  size_t values() const { return reads.size() + ops.size(); }
  DType dtype(size_t value) const {
    return value < reads.size() ? inputs[reads[value].input].dtype : ops[value - reads.size()].dtype;
  }
  int64_t elements() const { return (rows - 1) * columns + last_columns; }
  // One element for each place, in the order of rows.
  Place Whole() const { return {.steps = {{1, rows, columns}}, .column_stride = 1}; }
  // Rows and columns mean nothing: elements one by one, in rows of 64 (the last one may be shorter).
  bool IsFlat() const;
  // Streams that an instruction has to name.
  uint32_t Draws() const;
  // Rows whose outputs over rows are combined first, by the shape alone: there are at most 64 such blocks.
  int64_t BlockRows() const;
  int64_t Blocks() const { return (rows + BlockRows() - 1) / BlockRows(); }
  bool HasPartials() const;
  // Of the partial results of an output over rows: for each block a row of numbers, of 8 bytes where any is
  // i64.
  int64_t PartialWordBytes() const;
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

// Whether a result may be where an input is: then an element is read where, and before, it is written.
bool MayTakePlaceOf(const ClusterBody& body, uint32_t input, uint32_t result);

// Whether each value has columns of its own, or one number for a row: by value.
std::vector<bool> HasColumns(const ClusterBody& body);
// Reductions on the longest way to each value, itself included: by value.
std::vector<int> LevelsOf(const ClusterBody& body);

}  // namespace ft
