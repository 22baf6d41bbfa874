// Clusters walked row by row: what runs where there is no code for a cluster, and the reference of generated
// code.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"
#include "runtime/base/cluster_op.h"
#include "runtime/base/dtype.h"
#include "runtime/base/elementwise.h"
#include "runtime/base/reduction_kind.h"

namespace ft::cuda {

// A body with its addresses, as a kernel has it: runtime/base/cluster.h says what it means.
struct ClusterArgs {
  struct Step {
    int64_t every, extent, stride;
  };
  struct Place {
    int64_t begin, column_stride;
    int steps;
    Step step[kMaxClusterSteps];
  };
  struct Read {
    const void* data;
    DType dtype;
    Place place;
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
  // What an op of random bits draws, or which numbers an iota has (without a state); its parameter 0 is the
  // number of the draw here.
  struct Draw {
    const int64_t* state;
    int64_t elements;
    uint32_t stream;
    Place place;
  };
  struct Output {
    void* data;
    void* partials;   // of one over rows; else null
    const void* acc;  // that it is added to, or null
    uint8_t value;
    DType dtype;
    ReductionKind reduction;
    Place place;
  };
  int64_t rows, columns, last_columns;
  int64_t block_rows;  // 0: no outputs over rows
  int reads, ops, outputs;
  int last_level;
  Read read[kMaxClusterReads];
  Op op[kMaxClusterValues];
  Draw draw[kMaxClusterDraws];
  Output out[kMaxClusterOutputs];
};
static_assert(sizeof(ClusterArgs) <= 32764, "what CUDA 12.1 and newer give a kernel");

int Cluster(const ClusterArgs& args, StreamHandle stream);

}  // namespace ft::cuda
