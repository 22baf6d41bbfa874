#include "runtime/plan/target.h"

#include <algorithm>

namespace ft {
namespace {

// GPUs: NVIDIA's data sheets (A100 SXM 80 GB: 19.5 TFLOP/s fp32, 312 bf16, 2039 GB/s; H100 SXM: 67, 989,
// 3350; H200: 67, 989, 4800; NVLink 300 and 450 GB/s in each direction; PCIe 4.0 and 5.0 x16), times what
// large kernels and NCCL are commonly seen to reach of them: 65% of the matmul rate, 85% of the bandwidths,
// 80% of the link. "-ib": one 400 Gb/s adapter for each GPU. cpu: one core of a server with AVX-512, ranks
// that share memory.
// clang-format off
const Target kTargets[] = {
  // name       device              f32 FLOP/s  16-bit    memory B/s  kernel s  link s   link B/s  copy s   copy B/s
  {"cpu",       DeviceClass::kCpu,  1.4e11,     1.2e11,   1.0e10,     2e-6,     2e-5,    2.5e9,    5e-6,    5e9},
  {"a100",      DeviceClass::kCuda, 1.3e13,     2.0e14,   1.7e12,     4e-6,     1.5e-5,  2.4e11,   1e-5,    2.2e10},
  {"a100-ib",   DeviceClass::kCuda, 1.3e13,     2.0e14,   1.7e12,     4e-6,     3e-5,    2.0e10,   1e-5,    2.2e10},
  {"h100",      DeviceClass::kCuda, 4.4e13,     6.4e14,   2.8e12,     3e-6,     1.5e-5,  3.6e11,   1e-5,    4.5e10},
  {"h100-ib",   DeviceClass::kCuda, 4.4e13,     6.4e14,   2.8e12,     3e-6,     3e-5,    4.0e10,   1e-5,    4.5e10},
  {"h200",      DeviceClass::kCuda, 4.4e13,     6.4e14,   4.1e12,     3e-6,     1.5e-5,  3.6e11,   1e-5,    4.5e10},
  {"h200-ib",   DeviceClass::kCuda, 4.4e13,     6.4e14,   4.1e12,     3e-6,     3e-5,    4.0e10,   1e-5,    4.5e10},
};
// clang-format on

}  // namespace

const Target* FindTarget(std::string_view name) {
  for (const Target& target : kTargets) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

std::vector<std::string> TargetNames() {
  std::vector<std::string> names;
  for (const Target& target : kTargets) names.push_back(target.name);
  return names;
}

double KernelSeconds(const Target& target, uint64_t flops, uint64_t bytes, bool is_16bit) {
  const double rate = is_16bit ? target.flops_per_s_16bit : target.flops_per_s_f32;
  return target.kernel_latency_s +
         std::max(static_cast<double>(flops) / rate, static_cast<double>(bytes) / target.memory_bytes_per_s);
}

double TransferSeconds(const Target& target, proto::Opcode opcode, uint64_t bytes, int ranks) {
  if (opcode == proto::COPY)
    return target.copy_latency_s + static_cast<double>(bytes) / target.copy_bytes_per_s;
  if (ranks <= 1) return 0;
  const double passes = opcode == proto::ALL_REDUCE ? 2 : 1;
  const double sent = static_cast<double>(bytes) * (ranks - 1) / ranks;
  return target.link_latency_s + passes * sent / target.link_bytes_per_s;
}

}  // namespace ft
