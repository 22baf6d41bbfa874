// What kernels, collectives and copies cost on a machine, estimated ahead of time: list scheduling,
// recomputation, simulated time. docs/targets.md has the formulas and where they come from.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "runtime/base/device_class.h"
#include "runtime/plan/node_layout.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Figures that one rank reaches in practice, not peaks of data sheets. A plan carries those it was compiled
// for.
using Target = proto::Target;

inline DeviceClass DeviceOf(const Target& target) {
  return target.cuda() ? DeviceClass::kCuda : DeviceClass::kCpu;
}

inline constexpr size_t kLongestTargetName = 256;  // bytes

// Whether more is said to be reached than the peak, which a target need not know (0).
bool ExceedsPeak(const Target::Rate& rate);

// That of matrix products with operands of this type; fp32 for all but 16-bit floats.
const Target::Rate& RateOf(const Target& target, proto::DType dtype);

// The larger of computing `flops` and moving `bytes`, plus the latency of a kernel.
double KernelSeconds(const Target& target, uint64_t flops, uint64_t bytes, proto::DType dtype);

// The same on the host, where it is memory that takes the time.
double HostKernelSeconds(const Target& target, uint64_t bytes);

// A collective over a group that lies so on nodes, whose whole buffers have `bytes` together. 0 for one rank.
double CollectiveSeconds(const Target& target, proto::Opcode opcode, uint64_t bytes,
                         const NodeLayout& layout);

// Between host and device.
double CopySeconds(const Target& target, uint64_t bytes);

// OK when times can be reckoned with it: figures finite, rates above 0, latencies not negative. Errors:
// InvalidArgument that names the figure.
absl::Status VerifyTarget(const Target& target);

}  // namespace ft
