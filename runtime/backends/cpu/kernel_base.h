// How a CPU kernel is written: a maker that checks operands and returns a Kernel, and a Register function.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/backends/cpu/cpu_kernel.h"
#include "runtime/backends/cpu/isa.h"
#include "runtime/backends/cpu/loops.h"
#include "runtime/backends/cpu/parallel.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/check.h"
#include "runtime/device/kernel.h"

namespace ft::cpu {

using KernelOr = absl::StatusOr<std::unique_ptr<Kernel>>;

// Everything a maker is given.
struct KernelContext {
  const Loops& loops;
  const KernelOperands& operands;
  const KernelAttributes& attributes;
  int num_threads;
  Isa isa = Isa::kGeneric;

  const Tensor& in(size_t i) const { return operands.in[i]; }
  const Tensor& out(size_t i) const { return operands.out[i]; }
};

using Maker = KernelOr (*)(const KernelContext&);

// A kernel whose run is one function object.
template <typename F>
class FunctionKernel final : public CpuKernel {
 public:
  explicit FunctionKernel(F run) : run_(std::move(run)) {}
  void Run() override { run_(); }

 private:
  F run_;
};

template <typename F>
KernelOr MakeKernel(F run) {
  return std::make_unique<FunctionKernel<F>>(std::move(run));
}

template <Maker kMaker, Isa kIsa>
KernelOr Create(const KernelOperands& operands, const KernelAttributes& attributes,
                const KernelEnvironment& environment) {
  return kMaker({LoopsFor(kIsa), operands, attributes, environment.num_threads, kIsa});
}

template <Maker kMaker>
void Add(KernelRegistry& registry, std::string_view name, Isa isa) {
  switch (isa) {
    case Isa::kGeneric:
      return registry.Add(name, &Create<kMaker, Isa::kGeneric>);
    case Isa::kX86V3:
      return registry.Add(name, &Create<kMaker, Isa::kX86V3>);
    case Isa::kX86V4:
      return registry.Add(name, &Create<kMaker, Isa::kX86V4>);
    case Isa::kX86V4Bf16:
      return registry.Add(name, &Create<kMaker, Isa::kX86V4Bf16>);
    case Isa::kX86V4Amx:
      return registry.Add(name, &Create<kMaker, Isa::kX86V4Amx>);
  }
}

// Elements of a piece of an elementwise loop: its inputs fit in the second-level cache; a multiple of 1024.
inline constexpr int64_t kGrain = 16384;

// A loop over rows: run(begin, end). Pieces depend on the shape alone.
template <typename F>
KernelOr MakeRowwise(F run, int64_t rows, int64_t columns, int num_threads) {
  const int threads = ThreadsFor(num_threads, rows * columns);
  const int64_t grain = std::max<int64_t>(1, kGrain / 2 / std::max<int64_t>(1, columns));
  return MakeKernel([=] { ParallelRanges(rows, grain, threads, run); });
}

// The same: loop(args, begin, end).
template <typename Args>
KernelOr MakeRowwise(void (*loop)(const Args&, int64_t, int64_t), const Args& args, int64_t rows,
                     int64_t columns, int num_threads) {
  return MakeRowwise([=](int64_t begin, int64_t end) { loop(args, begin, end); }, rows, columns, num_threads);
}

}  // namespace ft::cpu
