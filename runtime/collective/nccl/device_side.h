// What communicators need to know of the device in whose memory their buffers lie.
#pragma once

#include <memory>

#include "runtime/backends/cuda/driver.h"
#include "runtime/kernels/rank_sum/cuda_device.h"

namespace ft {

namespace nccl {
class NcclApi;
}

struct CudaSide {
  // Its device is current in the thread that makes communicators. Must outlive them.
  cuda::Driver* driver = nullptr;
  cuda::RankSumLauncher rank_sum = nullptr;  // cuda::RankSum, where it is linked
  // Null: the library is loaded when it is needed.
  std::shared_ptr<nccl::NcclApi> nccl = {};
};

}  // namespace ft
