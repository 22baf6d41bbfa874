// Where the host reads and writes the ports of programs when it cannot reach the arena: beside it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"
#include "runtime/executor/operand_resolver.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// One place of pinned host memory for each place of the arena that is a port of any program. A program copies
// its inputs from there before anything else, and its outputs to there last. On a device whose arena the host
// can reach there is nothing to copy.
class HostPorts {
 public:
  // Errors: ResourceExhausted without host memory.
  static absl::StatusOr<HostPorts> Create(const proto::Plan& plan, const OperandResolver& resolver,
                                          Device& device);

  // The port as the host sees it. `tensor` is that of a port of the plan.
  Tensor OnHost(Tensor tensor) const;

  std::vector<CopyRegion> ToDevice(const proto::Program& program, const OperandResolver& resolver) const;
  std::vector<CopyRegion> FromDevice(const proto::Program& program, const OperandResolver& resolver) const;

 private:
  std::unique_ptr<Memory> memory_;       // null: the arena itself
  std::map<const void*, char*> places_;  // by address in the arena
};

}  // namespace ft
