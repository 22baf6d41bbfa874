// What one instruction costs a rank: the one place that says so, for schedules that are still being made as
// for plans. Of a plan nothing but units, buffers and the size of a block is looked at.
#pragma once

#include <array>

#include "runtime/plan/mesh.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/target.h"

namespace ft {

// What an instruction needs for itself while it runs. Those of one link share it.
enum class Occupies { kNothing, kDevice, kHost, kNodeLink, kNetwork, kToDevice, kFromDevice };

// Kinds of transfer, as far as they slow kernels down differently.
enum class TransferKind { kAllGather, kReduceScatter, kAllReduce, kCopy };
inline constexpr int kTransferKinds = 4;

struct InstructionCost {
  double latency_s = 0;  // at the beginning, which nothing makes longer
  double body_s = 0;     // with its stream, the device or the link for itself
  Occupies occupies = Occupies::kNothing;
  TransferKind kind = TransferKind::kCopy;  // of a transfer
  // Times that `body_s` takes beside others. A kernel: beside a transfer, by kind. A transfer: beside
  // kernels.
  std::array<double, kTransferKinds> beside_transfer = {1, 1, 1, 1};
  double beside_kernels = 1;

  double seconds() const { return latency_s + body_s; }
  bool is_transfer() const { return occupies >= Occupies::kNodeLink; }
};

// Whether a kernel is a matrix product, the head with the loss included.
bool IsProduct(const proto::Instruction& kernel);

// The type that a kernel computes with: that of the first operand of 16 bits, if there is one.
proto::DType KernelType(const proto::Instruction& kernel);

// On `target`; nothing for waits and releases.
InstructionCost CostOf(const proto::Plan& plan, const Mesh& mesh, const proto::Instruction& instruction,
                       const Target& target);

// The same, alone.
inline double InstructionSeconds(const proto::Plan& plan, const Mesh& mesh,
                                 const proto::Instruction& instruction, const Target& target) {
  return CostOf(plan, mesh, instruction, target).seconds();
}

// Seconds that the host takes to launch it, 0 where graphs are recorded: one launch follows another, and none
// runs before it is launched.
double LaunchSeconds(const Mesh& mesh, const proto::Instruction& instruction, const Target& target);

}  // namespace ft
