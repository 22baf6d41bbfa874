// One layer, or a few neighbours, as numbers: what its activations take and what computing them again costs.
#pragma once

#include "compiler/remat/training_graph.h"
#include "runtime/base/device_class.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace ft::compiler {

/// Forward and backward of consecutive layer runs, cut out of a training step. Values and ops are numbers.
struct LayerGraph {
  struct Value {
    uint64_t bytes = 0; // of device memory; 0 for what lies elsewhere: parameters, parts of flat gradients
    int producer = -1;  // op, -1: another layer
    bool fromBackward = false;   // made by the backward of another layer: here when ours begins
    bool savedForOthers = false; // read by the backward of other layers, before ours begins
    bool readAfter = false;      // by other layers after our backward
    bool operator==(const Value &) const = default;
  };
  struct Result {
    int value;
    int takesOver; // operand whose bytes it may use when that dies here, -1: none
    bool operator==(const Result &) const = default;
  };
  struct Op {
    std::vector<int> operands; // values
    std::vector<Result> results;
    uint64_t workspace = 0;
    uint64_t background = 0; // live beside all activations: parameters, gathered units, flat gradients
    double seconds = 0;
    int run = 0; // of the runs of this graph
    bool readsParameters = false;
    bool mayRecompute = false;
    double offloadSeconds = 0; // there and back; 0: it may not leave
    bool operator==(const Op &) const = default;
  };
  std::vector<Value> values;
  std::vector<Op> ops; // in order; the first `forwardOps` are forward
  int forwardOps = 0;
  // Ops by number. Not compared: equal graphs belong to different layers.
  std::vector<mlir::Operation *> origins;

  bool sameAs(const LayerGraph &other) const {
    return values == other.values && ops == other.ops && forwardOps == other.forwardOps;
  }
};

/// Prices and sizes, as the device that a plan is meant for has them.
struct LayerCosts {
  std::function<double(mlir::Operation *)> kernelSeconds;
  DeviceClass device = DeviceClass::kCpu;                // whose kernels want scratch
  std::function<double(uint64_t bytes)> copySeconds;     // one way; null: activations stay on the device
  int floatBytes = 4;                                    // of activations
  std::function<uint64_t(mlir::Operation *)> background; // null: none
};

/// Bytes of the results of an op of forward, each rounded up as a buffer is.
uint64_t activationBytes(mlir::Operation *op, int floatBytes);

/// Runs [begin, end) of `graph`. What they hand on to other layers in forward may not be recomputed.
LayerGraph cutLayers(const TrainingGraph &graph, unsigned begin, unsigned end, const LayerCosts &costs);

} // namespace ft::compiler
