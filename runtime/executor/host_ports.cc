#include "runtime/executor/host_ports.h"

#include <algorithm>

#include "runtime/base/status_macros.h"

namespace ft {
namespace {

constexpr uint64_t kAlignment = 64;

}  // namespace

absl::StatusOr<HostPorts> HostPorts::Create(const proto::Plan& plan, const OperandResolver& resolver,
                                            Device& device) {
  HostPorts ports;
  if (device.host_accessible()) return ports;
  std::map<const void*, uint64_t> sizes;  // ports of several programs share their places
  for (const proto::Program& program : plan.programs()) {
    for (const auto* list : {&program.inputs(), &program.outputs()}) {
      for (const proto::Port& port : *list) {
        const Tensor tensor = resolver.Resolve(port.operand());
        uint64_t& bytes = sizes[tensor.data];
        bytes = std::max(bytes, tensor.bytes());
      }
    }
  }
  uint64_t total = 0;
  std::map<const void*, uint64_t> offsets;
  for (const auto& [address, bytes] : sizes) {
    offsets[address] = total;
    total += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  FT_ASSIGN_OR_RETURN(ports.memory_, device.AllocateHost(std::max(total, kAlignment)));
  for (const auto& [address, offset] : offsets)
    ports.places_[address] = static_cast<char*>(ports.memory_->data()) + offset;
  return ports;
}

Tensor HostPorts::OnHost(Tensor tensor) const {
  if (memory_ != nullptr && tensor.present()) tensor.data = places_.at(tensor.data);
  return tensor;
}

std::vector<CopyRegion> HostPorts::ToDevice(const proto::Program& program,
                                            const OperandResolver& resolver) const {
  std::vector<CopyRegion> regions;
  if (memory_ == nullptr) return regions;
  for (const proto::Port& port : program.inputs()) {
    const Tensor tensor = resolver.Resolve(port.operand());
    regions.push_back({places_.at(tensor.data), tensor.data, tensor.bytes()});
  }
  return regions;
}

std::vector<CopyRegion> HostPorts::FromDevice(const proto::Program& program,
                                              const OperandResolver& resolver) const {
  std::vector<CopyRegion> regions;
  if (memory_ == nullptr) return regions;
  for (const proto::Port& port : program.outputs()) {
    const Tensor tensor = resolver.Resolve(port.operand());
    regions.push_back({tensor.data, places_.at(tensor.data), tensor.bytes()});
  }
  return regions;
}

}  // namespace ft
