// The device that this rank computes on.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/backends/cpu/isa.h"
#include "runtime/backends/cpu/mapped_code.h"
#include "runtime/collective/nccl/device_side.h"
#include "runtime/collective/nccl/nccl_api.h"
#include "runtime/collective/rendezvous/peer_info.h"
#include "runtime/device/device.h"
#include "runtime/device/host_kernels.h"
#include "runtime/device/kernel.h"
#include "tools/ftexec/device_memory.h"
#include "tools/ftexec/job.h"

namespace ft {

// Where NCCL comes from: the library, or a stand-in for it.
using NcclSource = std::function<absl::StatusOr<std::shared_ptr<nccl::NcclApi>>()>;

class RankDevice {
 public:
  // As --device says: the CPU, or the GPU of this rank, which it may share. Errors: one line about driver,
  // device or library. `load_nccl` is called for several ranks on GPUs.
  static absl::StatusOr<std::unique_ptr<RankDevice>> Open(const Flags& flags, const Job& job,
                                                          const NcclSource& load_nccl);

  // The best instruction set that the processors of this rank's host may compute with.
  std::string_view best_instruction_set() const { return cpu::Name(isa_); }
  // Those of all ranks compute with the best one that every rank may use: from here on kernels can be made.
  // FailedPrecondition when ranks have none in common.
  absl::Status SettleInstructionSet(const std::vector<PeerInfo>& peers);
  // Then that one; empty on a GPU, whose host computes no more than updates.
  std::string_view instruction_set() const { return is_cpu_ ? cpu::Name(isa_) : ""; }

  // Which code of clusters it runs, ClusterCode::target; empty where none is made for it.
  std::string_view code_target() const;
  // The same of its host.
  std::string_view host_code_target() const { return cpu::CodeTarget(isa_); }

  // The PCI address of the GPU; empty on the CPU, or when it is not known.
  const std::string& gpu() const { return gpu_; }
  // Device::mappable_page_bytes, where windows are wanted.
  uint64_t gpu_page_bytes() const;
  // OK when ranks that have met compute on GPUs of their own, or share what they may share (CheckSharing).
  absl::Status CheckGpus(const std::vector<PeerInfo>& peers) const;

  Device& device() const { return *device_; }
  bool is_cpu() const { return is_cpu_; }

  // For communicators; none on the CPU.
  const std::optional<CudaSide>& cuda_side() const { return cuda_side_; }

  // FLOP/s by the data sheet for what the plan computes most of, 0 when unknown.
  double PeakFlops(const proto::Plan& plan) const;

  // Lines for the header: which GPU, how MFU is counted, what was decided about kernels. Empty on the CPU.
  std::string Description(const proto::Plan& plan) const;

  // Of the GPU, now; nothing on the CPU.
  DeviceMemoryUse Memory(uint64_t arena_bytes) const;
  // Whether what is taken of its memory may be another rank's.
  bool may_share() const { return may_share_; }

 private:
  RankDevice() = default;

  KernelRegistry cpu_kernels_;
  std::unique_ptr<HostKernels> host_kernels_;  // for a GPU
  std::unique_ptr<Device> device_;
  bool is_cpu_ = true;
  cpu::Isa isa_ = cpu::Isa::kGeneric;
  bool tf32_ = false;
  bool may_share_ = false;
  std::string gpu_;
  uint64_t used_before_ = 0;
  std::optional<CudaSide> cuda_side_;
};

}  // namespace ft
