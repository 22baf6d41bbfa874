// Runs the programs of a plan on one device alone, instruction after instruction, and says how long each
// kernel takes by itself: in the place it has in a step, so with what the kernels before it have left in
// caches, and with nothing beside it.
//
// The other ranks are imagined to hold what this one holds: a gather copies the own slice into every place,
// a reduction hands back the own summand. So a rank of any mesh can be walked where its arena fits.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/device/device.h"
#include "runtime/executor/operand_resolver.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

class PlanWalk {
 public:
  // Allocates the arenas and makes all kernels. `plan` has passed VerifyPlan; plan, bound and device must
  // outlive it. Errors: ResourceExhausted without memory; FailedPrecondition for a kernel that the device
  // lacks or that refuses its operands, with its place.
  static absl::StatusOr<std::unique_ptr<PlanWalk>> Create(const proto::Plan& plan, const BoundPlan& bound,
                                                          Device& device, int rank);
  ~PlanWalk();

  // Inputs of all programs: random ids and numbers by their type and range, drawn from `seed`; a small
  // learning rate, no step done so far, the plan's first loss scale. Errors: the device's; of LossScalingOf.
  absl::Status FillInputs(uint64_t seed);

  // Runs a program once. Errors: the device's.
  absl::Status Run(int program);

  // Seconds from the beginning of each instruction to that of the next, in the last run of `program`; 0 for
  // what runs nothing. What goes on between two kernels belongs to the first.
  const std::vector<double>& seconds(int program) const;

  const OperandResolver& operands() const { return resolver_; }

 private:
  struct Program;
  PlanWalk(const proto::Plan& plan, const BoundPlan& bound, Device& device, int rank,
           std::unique_ptr<Memory> arena, std::unique_ptr<Memory> host_arena);
  absl::Status Load();
  absl::Status AddInstruction(int program, int instruction);
  std::vector<CopyRegion> OwnPieces(const proto::Instruction& transfer) const;
  std::vector<CopyRegion> StandIn(const proto::Instruction& transfer) const;

  const proto::Plan& plan_;
  const BoundPlan& bound_;
  Device& device_;
  const int rank_;
  std::unique_ptr<Memory> arena_, host_arena_;
  OperandResolver resolver_;
  std::vector<std::shared_ptr<const Cluster>> clusters_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::unique_ptr<Stream> compute_, host_;  // host_: null without kernels of the host
};

}  // namespace ft
