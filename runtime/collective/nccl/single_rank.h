// Collectives of a group with one rank whose buffers are on a device: copies and scalings on its stream.
#pragma once

#include <memory>

#include "runtime/collective/communicator.h"
#include "runtime/collective/nccl/device_side.h"

namespace ft::nccl {

std::unique_ptr<Communicator> CreateSingleRankCommunicator(CudaSide cuda);

}  // namespace ft::nccl
