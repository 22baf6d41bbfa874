// What the kernels "update" and "update_scalars" are given, read and checked once for all devices.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/cluster.h"
#include "runtime/base/step_scalars.h"
#include "runtime/device/kernel.h"

namespace ft {

// Elements [begin, end) of a slice that are alike. `begin` is a multiple of kBlockElements.
struct UpdateRun {
  int64_t begin;
  int64_t end;    // of whole blocks, but for what is rounded stochastically: that of a parameter
  bool decays;    // whether weight decay applies
  int64_t first;  // the element of the parameter at `begin`; of what is rounded stochastically only
  uint32_t stream;
};

struct UpdateOperands {
  ClusterBody body;  // of one block
  // Inputs and results of the body that have elements: gradient, parameter, states; parameter, states and,
  // where the plan has one, a copy of the parameter in 16 bits. Of a direction: gradient, states; direction,
  // states.
  std::vector<Tensor> in, out;
  bool is_direction = false;
  size_t first_state() const { return is_direction ? 1 : 2; }  // of `in`
  const float* scalars = nullptr;  // the other inputs: without and with weight decay
  int64_t num_scalars = 0;
  const int64_t* rng = nullptr;  // null: rounded to nearest by the body
  const int64_t* step = nullptr;
  int64_t elements = 0;  // of the slice
  std::vector<UpdateRun> runs;

  size_t num_addresses() const { return body.inputs.size() + body.results.size(); }
  // Those of the body at element `at` of the slice, in its order.
  void SetAddresses(int64_t at, bool decays, void** addresses) const;
  std::vector<void*> Addresses(int64_t at, bool decays) const;
  // The body over `elements`, whole blocks of them.
  ClusterBody BodyOver(int64_t elements) const;
};

// In gradient, scalars and, for stochastic rounding, rng and step; out as above, flat buffers of a unit. The
// attribute `direction`: what is written is none of the parameter.
absl::StatusOr<UpdateOperands> ReadUpdateOperands(const KernelOperands& operands,
                                                  const KernelAttributes& attributes);

struct ScalarOperands {
  StepScalars formulas;
  const float* coefficient = nullptr;
  const float* lr = nullptr;
  const int64_t* step = nullptr;
  const float* inverse_ranks = nullptr;  // where a formula names it
  float* scalars = nullptr;
};

// In coefficient, lr, step and, where a formula names it, inverse_ranks; out scalars. Attributes `formulas`
// and `weight_decay`.
absl::StatusOr<ScalarOperands> ReadScalarOperands(const KernelOperands& operands,
                                                  const KernelAttributes& attributes);

}  // namespace ft
