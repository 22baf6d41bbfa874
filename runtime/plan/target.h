// Named machines, for costs that are estimated ahead of time: list scheduling, recomputation, simulated time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/device_class.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Rates that one rank reaches in practice, not peaks of data sheets.
struct Target {
  std::string name;
  DeviceClass device;  // that its ranks run on
  double flops_per_s_f32;
  double flops_per_s_16bit;
  double memory_bytes_per_s;
  double kernel_latency_s;  // per kernel
  double link_latency_s;    // per transfer between ranks, once for a bucket
  double link_bytes_per_s;  // that a rank sends between ranks
  double copy_latency_s;    // per copy between host and device
  double copy_bytes_per_s;
};

// nullptr when there is none of this name.
const Target* FindTarget(std::string_view name);
std::vector<std::string> TargetNames();

// The larger of computing `flops` and moving `bytes`, plus the latency of a kernel.
double KernelSeconds(const Target& target, uint64_t flops, uint64_t bytes, bool is_16bit);

// A collective over `ranks` whose whole buffers have `bytes` together: latency + (n - 1) / n * bytes /
// bandwidth, twice the second term for all_reduce; 0 for one rank. COPY: latency + bytes / bandwidth of
// copies.
double TransferSeconds(const Target& target, proto::Opcode opcode, uint64_t bytes, int ranks);

}  // namespace ft
