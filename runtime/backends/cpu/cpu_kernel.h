// A kernel as the CPU's streams run it.
#pragma once

#include "runtime/device/kernel.h"

namespace ft {

class CpuKernel : public Kernel {
 public:
  // On the calling thread and its team; returns when the results are there. Neither allocates nor fails.
  virtual void Run() = 0;
};

}  // namespace ft
