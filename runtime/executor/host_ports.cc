#include "runtime/executor/host_ports.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace ft {
namespace {

constexpr uint64_t kAlignment = 64;

}  // namespace

absl::StatusOr<HostPorts> HostPorts::Create(const proto::Plan& plan, const OperandResolver& resolver,
                                            Device& device) {
  HostPorts ports;
  ports.all_have_places_ = !device.host_accessible();
  for (const proto::Input& input : plan.inputs()) ports.model_inputs_.insert(input.name());
  std::map<Key, uint64_t> sizes;  // ports of several programs share their places
  const auto add = [&](const Key& key, const Tensor& tensor) {
    if (!ports.all_have_places_ && !key.second) return;
    uint64_t& bytes = sizes[key];
    bytes = std::max(bytes, tensor.bytes());
  };
  for (const proto::Program& program : plan.programs()) {
    for (const proto::Port& port : program.inputs()) {
      const Tensor tensor = resolver.Resolve(port.operand());
      add(ports.KeyOfInput(port.name(), tensor), tensor);
    }
    for (const proto::Port& port : program.outputs()) {
      const Tensor tensor = resolver.Resolve(port.operand());
      add({tensor.data, false}, tensor);
    }
  }
  uint64_t total = 0;
  std::map<Key, uint64_t> offsets;
  for (const auto& [key, bytes] : sizes) {
    offsets[key] = total;
    total += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  if (total == 0) return ports;
  absl::StatusOr<std::unique_ptr<Memory>> memory = device.AllocateHost(total);
  if (!memory.ok())
    return absl::Status(memory.status().code(),
                        absl::StrCat("the next batch beside the arena: ", memory.status().message()));
  ports.memory_ = *std::move(memory);
  for (const auto& [key, offset] : offsets)
    ports.places_[key] = static_cast<char*>(ports.memory_->data()) + offset;
  return ports;
}

HostPorts::Key HostPorts::KeyOfInput(std::string_view name, const Tensor& tensor) const {
  return {tensor.data, model_inputs_.contains(name)};
}

Tensor HostPorts::OnHost(const Key& key, Tensor tensor) const {
  if (tensor.present() && (all_have_places_ || key.second)) tensor.data = places_.at(key);
  return tensor;
}

Tensor HostPorts::Input(std::string_view name, Tensor tensor) const {
  return OnHost(KeyOfInput(name, tensor), tensor);
}

Tensor HostPorts::Output(Tensor tensor) const { return OnHost({tensor.data, false}, tensor); }

std::vector<CopyRegion> HostPorts::ToDevice(const proto::Program& program,
                                            const OperandResolver& resolver) const {
  std::vector<CopyRegion> regions;
  for (const proto::Port& port : program.inputs()) {
    const Tensor tensor = resolver.Resolve(port.operand()), there = Input(port.name(), tensor);
    if (there.data != tensor.data) regions.push_back({there.data, tensor.data, tensor.bytes()});
  }
  return regions;
}

std::vector<CopyRegion> HostPorts::FromDevice(const proto::Program& program,
                                              const OperandResolver& resolver) const {
  std::vector<CopyRegion> regions;
  for (const proto::Port& port : program.outputs()) {
    const Tensor tensor = resolver.Resolve(port.operand()), there = Output(tensor);
    if (there.data != tensor.data) regions.push_back({tensor.data, there.data, tensor.bytes()});
  }
  return regions;
}

}  // namespace ft
