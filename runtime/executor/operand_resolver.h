// From the plan's operands to addresses.
#pragma once

#include <string>

#include "runtime/device/kernel.h"
#include "runtime/plan/all_to_all.h"
#include "runtime/plan/bind.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/unit_parameters.h"

namespace ft {

// Knows where the arenas are, and so where every operand is. The plan must be verified and bound.
class OperandResolver {
 public:
  // `device_arena` and `host_arena` are as long as `bound` says; host_arena may be null when it has no bytes.
  OperandResolver(const proto::Plan& plan, const BoundPlan& bound, int rank, void* device_arena,
                  void* host_arena)
      : plan_(plan),
        bound_(bound),
        parameters_(ParametersOfUnits(plan)),
        rank_(rank),
        device_(static_cast<char*>(device_arena)),
        host_(static_cast<char*>(host_arena)) {}

  // An absent operand gives an absent tensor. This rank's slice of a unit, be it a buffer or a part of one,
  // knows its first element in the unit; a flat buffer, all of it or a slice, the parameters of its unit, as
  // long as this lives.
  Tensor Resolve(const proto::Operand& operand) const;

  KernelOperands Operands(const proto::Instruction& instruction) const;

  // Whether this rank runs a kernel: some work on what not every rank has.
  bool Runs(const proto::Instruction& kernel) const {
    return RunsOn(plan_, bound_.mesh, ShardRank(), kernel);
  }
  // What this rank sends and receives in an all_to_all.
  Moves Moved(const proto::Instruction& transfer) const {
    return MovesOf(plan_, bound_.mesh, ShardRank(), transfer);
  }

  char* Address(uint32_t buffer) const;
  uint64_t Bytes(uint32_t buffer) const { return bound_.sizes[buffer]; }
  // First element of this rank's slice of a unit.
  uint64_t SliceBegin(uint32_t unit) const { return ShardRank() * bound_.slices[unit]; }

 private:
  int ShardRank() const { return bound_.mesh.ShardRank(rank_); }

  const proto::Plan& plan_;
  const BoundPlan& bound_;
  const UnitParameters parameters_;
  const int rank_;
  char* const device_;
  char* const host_;
};

// "f32[4,64] f32[64,8] -> f32[4,8]": what it reads and writes, on this rank.
std::string ShapesText(const proto::Instruction& instruction, const OperandResolver& resolver);

// The attributes of an instruction, for the factory of its kernel.
KernelAttributes AttributesOf(const proto::Instruction& instruction);

}  // namespace ft
