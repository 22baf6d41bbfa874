// A machine, as runtime/cost reckons times with it: list scheduling, recomputation, simulated time.
// docs/targets.md has what its figures mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "runtime/base/device_class.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Figures that one rank reaches in practice, not peaks of data sheets. A plan carries those it was compiled
// for.
using Target = proto::Target;

inline DeviceClass DeviceOf(const Target& target) {
  return target.cuda() ? DeviceClass::kCuda : DeviceClass::kCpu;
}

inline constexpr size_t kLongestTargetName = 256;     // bytes
inline constexpr size_t kMostTargetBytes = 64 << 10;  // in a plan: some 1,600 kernels that were timed

// Whether more is said to be reached than the peak, which a target need not know (0).
bool ExceedsPeak(const Target::Rate& rate);

// That of matrix products with operands of this type; fp32 for all but 16-bit floats.
const Target::Rate& RateOf(const Target& target, proto::DType dtype);

// "2 ranks a host, 1 thread each, avx512": how a machine was measured.
std::string LayoutText(const Target::Measured& measured);
// The same of the kernels that were timed.
std::string TimedLayoutText(const Target::Measured& measured);

// "fp32", "bf16", "fp16": the type of a rate.
const char* RateName(proto::DType dtype);

// OK when times can be reckoned with it: figures finite, rates above 0, latencies not negative. Errors:
// InvalidArgument that names the figure.
absl::Status VerifyTarget(const Target& target);

}  // namespace ft
