#include "tools/ftexec/rank_device.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "runtime/backends/cpu/device/cpu_device.h"
#include "runtime/backends/cpu/device/cpu_host_kernels.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cuda/device/open_cuda_device.h"
#include "runtime/base/cluster.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/nccl/windows.h"
#include "runtime/plan/report.h"
#include "tools/ftexec/gpu_sharing.h"

namespace ft {

absl::StatusOr<std::unique_ptr<RankDevice>> RankDevice::Open(const Flags& flags, const Job& job,
                                                             const NcclSource& load_nccl) {
  std::unique_ptr<RankDevice> rank_device(new RankDevice());
  rank_device->isa_ = flags.instruction_set.value_or(cpu::BestIsa());
  if (flags.device == DeviceKind::kCuda) {
    rank_device->is_cpu_ = false;
    rank_device->tf32_ = flags.tf32;
    rank_device->host_kernels_ = std::make_unique<CpuHostKernels>(
        rank_device->cpu_kernels_, KernelEnvironment{.num_threads = job.threads});
    FT_ASSIGN_OR_RETURN(
        cuda::OpenedDevice opened,
        cuda::OpenCudaDevice(job.environment.local_rank, {.platform = flags.platform(),
                                                          .host_kernels = rank_device->host_kernels_.get()}));
    rank_device->device_ = std::move(opened.device);
    rank_device->may_share_ = flags.share_gpus;
    rank_device->gpu_ = std::move(opened.pci_address);
    rank_device->used_before_ = opened.used_before;
    rank_device->cuda_side_ = CudaSide{.driver = opened.driver, .rank_sum = opened.rank_sum};
    if (job.world_size() > 1) {
      FT_ASSIGN_OR_RETURN(rank_device->cuda_side_->nccl, load_nccl());
    }
    return rank_device;
  }
  rank_device->device_ = std::make_unique<CpuDevice>(
      rank_device->cpu_kernels_, CpuDeviceOptions{.num_threads = job.threads, .may_spin = job.may_spin});
  return rank_device;
}

absl::Status RankDevice::SettleInstructionSet(const std::vector<PeerInfo>& peers) {
  for (const PeerInfo& peer : peers) {
    const std::optional<cpu::Isa> isa = cpu::IsaOf(peer.instruction_set);
    if (!isa.has_value()) {
      return absl::FailedPreconditionError(
          fmt::format("rank {} ({}) computes with '{}', which this machine does not know: run all ranks on "
                      "machines of one architecture",
                      peer.rank, Whereabouts(peer), peer.instruction_set));
    }
    isa_ = std::min(isa_, *isa);
  }
  RegisterCpuKernels(cpu_kernels_, isa_);
  return absl::OkStatus();
}

std::string_view RankDevice::code_target() const {
  return is_cpu_ ? host_code_target() : std::string_view(ClusterCode::kPtx);
}

uint64_t RankDevice::gpu_page_bytes() const {
  return nccl::WindowsAreOff() ? 0 : device_->mappable_page_bytes();
}

absl::Status RankDevice::CheckGpus(const std::vector<PeerInfo>& peers) const {
  if (is_cpu_) return absl::OkStatus();
  int version = 0;
  const bool known =
      cuda_side_->nccl != nullptr && cuda_side_->nccl->GetVersion(&version) == nccl::Result::kSuccess;
  return CheckSharing(peers, may_share_, known ? version : 0);
}

double RankDevice::PeakFlops(const proto::Plan& plan) const {
  return device_->peak_flops(static_cast<DType>(MainType(plan)));
}

std::string RankDevice::Description(const proto::Plan& plan) const {
  if (is_cpu_) return "";
  std::string text = device_->description() + "\n";
  const double peak = PeakFlops(plan);
  const auto main = static_cast<DType>(MainType(plan));
  if (peak > 0) {
    text += fmt::format(
        "MFU counts model FLOPs, without recomputation, against {:.0f} TFLOP/s, the dense {} peak\n",
        peak * 1e-12, main == DType::kF32 && tf32_ ? "tf32" : Name(main));
  }
  int version = 0;
  if (cuda_side_->nccl != nullptr && cuda_side_->nccl->GetVersion(&version) == nccl::Result::kSuccess)
    text += fmt::format("NCCL {}\n", nccl::VersionText(version));
  for (const std::string& note : device_->notes()) text += note + "\n";
  return text;
}

DeviceMemoryUse RankDevice::Memory(uint64_t arena_bytes) const {
  if (is_cpu_) return {};
  return {.used = device_->used_bytes(), .used_before = used_before_, .arena = arena_bytes};
}

}  // namespace ft
