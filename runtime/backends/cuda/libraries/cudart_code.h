// Code of plans, compiled and loaded by the driver.
#pragma once

#include "runtime/backends/cuda/code_loader.h"

namespace ft::cuda {

// For the device that is current when it loads.
std::unique_ptr<CodeLoader> CreateCudartCodeLoader();

}  // namespace ft::cuda
