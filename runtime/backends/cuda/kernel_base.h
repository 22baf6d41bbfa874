// How a kernel of this backend is made: a maker checks operands, as on the CPU, and returns what enqueues the
// device code of runtime/kernels on a stream.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/backends/cuda/fused_attention.h"
#include "runtime/backends/cuda/platform.h"
#include "runtime/backends/cuda/products.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"
#include "runtime/device/kernel.h"

namespace ft::cuda {

class CudaKernel : public Kernel {
 public:
  // Enqueues on `stream`; neither allocates nor waits. Returns a cudaError_t as int, 0 for success.
  virtual int Launch(StreamHandle stream) = 0;
};

using KernelOr = absl::StatusOr<std::unique_ptr<Kernel>>;

// Everything a maker is given.
struct KernelContext {
  const KernelOperands& operands;
  const KernelAttributes& attributes;
  const DeviceProperties& properties;
  Products& products;
  FusedAttention* attention;  // null: own kernels only
  AttentionChoice attention_choice;
  CodeLoader* code = nullptr;       // null: clusters are walked
  bool deterministic = false;       // PlatformOptions::deterministic
  std::vector<std::string>& notes;  // choices to print once ("attention 64x12x1024x64: cuDNN"), no repeats

  const Tensor& in(size_t i) const { return operands.in[i]; }
  const Tensor& out(size_t i) const { return operands.out[i]; }
  void Note(std::string line) const {
    if (std::find(notes.begin(), notes.end(), line) == notes.end()) notes.push_back(std::move(line));
  }
};

using Maker = KernelOr (*)(const KernelContext&);

class KernelTable {
 public:
  void Add(std::string_view name, Maker maker) { makers_.emplace_back(name, maker); }
  Maker Find(std::string_view name) const;  // nullptr when there is none
  std::vector<std::string> Names() const;

 private:
  std::vector<std::pair<std::string, Maker>> makers_;
};

template <typename F>
class FunctionKernel final : public CudaKernel {
 public:
  explicit FunctionKernel(F launch) : launch_(std::move(launch)) {}
  int Launch(StreamHandle stream) override { return launch_(stream); }

 private:
  F launch_;
};

// `launch` takes a StreamHandle and returns a cudaError_t as int.
template <typename F>
KernelOr MakeKernel(F launch) {
  return std::make_unique<FunctionKernel<F>>(std::move(launch));
}

}  // namespace ft::cuda
