// Clusters walked row by row: what runs where there is no code for a cluster, and the reference of generated
// code.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/routines/launch.h"
#include "runtime/base/cluster_op.h"
#include "runtime/base/dtype.h"
#include "runtime/base/elementwise.h"
#include "runtime/base/reduction_kind.h"

namespace ft::cuda {

// A body with its addresses, as a kernel has it: runtime/base/cluster.h says what it means.
struct ClusterArgs {
  struct Input {
    const void* data;
    int64_t rows;
    DType dtype;
    bool columns;
  };
  struct Op {
    ClusterOpKind kind;
    Elementwise function;
    ReductionKind reduction;
    DType dtype;
    bool columns;
    uint8_t level;
    uint8_t count;
    uint8_t operands[kMaxElementwiseOperands];
    double parameters[2];
  };
  struct Output {
    void* data;
    void* partials;  // of one over rows; else null
    uint8_t value;
    DType dtype;
    bool columns;
    ReductionKind reduction;
  };
  int64_t rows, columns, last_columns;
  int64_t block_rows;  // 0: no outputs over rows
  int inputs, ops, outputs;
  int last_level;
  Input in[kMaxClusterInputs];
  Op op[kMaxClusterValues];
  Output out[kMaxClusterOutputs];
};
static_assert(sizeof(ClusterArgs) <= 4096, "what a kernel may be given");

int Cluster(const ClusterArgs& args, StreamHandle stream);

}  // namespace ft::cuda
