// Where the host reads and writes the ports of programs: beside the arena, where it cannot reach that, or
// where a program that runs may still read there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"
#include "runtime/executor/operand_resolver.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// One place of pinned host memory for each place of the arena that is a port of any program. Inputs are
// copied from there before a program does anything, and outputs to there last. Inputs of the model have
// places that are theirs alone, so that the next batch can be written while a program runs that has taken its
// own. On a device whose arena the host can reach there are no others: other ports are in the arena.
class HostPorts {
 public:
  // BatchBytes() of host memory, on a device whose arena the host cannot reach a few more. Errors:
  // ResourceExhausted without it.
  static absl::StatusOr<HostPorts> Create(const proto::Plan& plan, const OperandResolver& resolver,
                                          Device& device);

  // Ports as the host sees them. `tensor` is that of a port of the plan.
  Tensor Input(std::string_view name, Tensor tensor) const;
  Tensor Output(Tensor tensor) const;

  std::vector<CopyRegion> ToDevice(const proto::Program& program, const OperandResolver& resolver) const;
  std::vector<CopyRegion> FromDevice(const proto::Program& program, const OperandResolver& resolver) const;

 private:
  // An address in the arena, and whether it is that of an input of the model.
  using Key = std::pair<const void*, bool>;

  Key KeyOfInput(std::string_view name, const Tensor& tensor) const;
  Tensor OnHost(const Key& key, Tensor tensor) const;

  std::set<std::string, std::less<>> model_inputs_;  // by name
  std::unique_ptr<Memory> memory_;                   // null: no port has a place in it
  bool all_have_places_ = false;
  std::map<Key, char*> places_;
};

}  // namespace ft
