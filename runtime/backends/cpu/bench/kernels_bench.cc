// Speed of the CPU kernels at the shapes of GPT-2 124M; ft_cpu_bench --help.
#include <sys/mman.h>
#include <time.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "CLI/CLI.hpp"
#include "runtime/backends/cpu/cpu_kernel.h"
#include "runtime/backends/cpu/parallel.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/base/flat_layout.h"
#include "runtime/base/workspace.h"
#include "runtime/kernels/matmul/cpu_loops.h"

namespace ft {
namespace {

// Memory for one kernel at a time.
class Bench {
 public:
  Bench(cpu::Isa isa, int threads, bool huge_pages, DType dtype)
      : threads_(threads), huge_pages_(huge_pages), dtype_(dtype) {
    RegisterCpuKernels(registry_, isa);
    ChoosePeak(isa);
  }

  Tensor Make(std::vector<int64_t> dims, DType dtype = DType::kF32) {
    Tensor tensor;
    tensor.dtype = dtype;
    tensor.rank = static_cast<int>(dims.size());
    for (size_t i = 0; i < dims.size(); ++i) tensor.dims[i] = dims[i];
    const size_t bytes = (tensor.elements() * SizeOf(dtype) + 63) / 64 * 64;
    buffers_.emplace_back(static_cast<char*>(std::aligned_alloc(
                              kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment)),
                          &std::free);
    tensor.data = buffers_.back().get();
    if (huge_pages_) madvise(tensor.data, bytes, MADV_HUGEPAGE);
    std::memset(tensor.data, 0, bytes);
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      const float value =
          0.1f * (static_cast<float>(static_cast<uint32_t>(i * 2654435761u) >> 8) * 0x1p-24f - 0.5f);
      const uint32_t bits = std::bit_cast<uint32_t>(value);
      if (dtype == DType::kF32) tensor.as<float>()[i] = value;
      if (dtype == DType::kBF16) tensor.as<uint16_t>()[i] = static_cast<uint16_t>(bits >> 16);
      // About the same: normal numbers of binary16, the mantissa cut.
      if (dtype == DType::kF16) {
        tensor.as<uint16_t>()[i] = static_cast<uint16_t>(
            (bits >> 16 & 0x8000u) |
            (std::abs(value) < 0x1p-14f ? 0 : ((bits & 0x7FFFFFFFu) - 0x38000000u) >> 13));
      }
    }
    return tensor;
  }

  // A tensor of the type that is computed with.
  Tensor Data(std::vector<int64_t> dims) { return Make(std::move(dims), dtype_); }

  double DataBytes() const { return static_cast<double>(SizeOf(dtype_)); }

  Tensor Workspace(int64_t bytes) { return Make({bytes}, DType::kU8); }

  // Prints time, and GFLOP/s or GB/s. The peak is measured between the runs, since clocks change.
  void Run(const char* label, const char* name, const KernelOperands& operands,
           const KernelAttributes& attributes, double flops, double bytes) {
    auto kernel = registry_.Find(name)(operands, attributes, {threads_});
    if (!kernel.ok()) {
      std::printf("%-28s %s\n", label, std::string(kernel.status().message()).c_str());
      return;
    }
    double best = 1e9, spent = 0, peak = 0;
    for (int i = 0; i < 3 || (i < 60 && spent < 0.4); ++i) {
      if (flops > 0) peak = std::max(peak, MeasurePeak());
      const double begin = Now();
      static_cast<CpuKernel&>(**kernel).Run();
      const double seconds = Now() - begin;
      best = std::min(best, seconds);
      spent += seconds;
    }
    std::printf("%-28s %9.1f us", label, best * 1e6);
    if (flops > 0)
      std::printf(" %8.1f GFLOP/s %5.1f%% of peak", flops / best / 1e9, 100 * flops / best / peak);
    if (bytes > 0) std::printf(" %8.1f GB/s", bytes / best / 1e9);
    std::printf("\n");
    buffers_.clear();
  }

 private:
  // What products are made of: multiply-adds of bf16 where there are some, else of f32. OpenBLAS, which
  // multiplies instead of the generic set, takes the best set.
  void ChoosePeak(cpu::Isa isa) {
    const cpu::Isa multiplies = cpu::LoopsFor(isa).gemm.blas_for_f32 ? cpu::BestIsa() : isa;
    const cpu::GemmLoops& loops = cpu::LoopsFor(multiplies).gemm;
    const bool bf16 = dtype_ == DType::kBF16 && loops.peak_bf16 != nullptr;
    if (dtype_ == DType::kBF16 && !bf16) std::printf("no AVX512_BF16 or AMX: bf16 is multiplied in f32\n");
    peak_ = bf16 ? loops.peak_bf16 : loops.peak_f32;
    double peak = 0;
    for (int i = 0; i < 100; ++i) peak = std::max(peak, MeasurePeak());
    std::printf("peak of %s: %.1f GFLOP/s\n", bf16 ? "bf16" : "f32", peak / 1e9);
  }

  // FLOP/s of multiply-adds in registers on all threads, for some milliseconds.
  double MeasurePeak() {
    const double begin = Now();
    double operations = 0;
    cpu::ParallelFor(threads_, threads_, [&](int64_t thread) {
      const double mine = peak_(int64_t{1} << 17);
      if (thread == 0) operations = mine * threads_;
    });
    return operations / (Now() - begin);
  }

  // Seconds. With one thread its CPU time, so that other programs on the machine show less.
  double Now() const {
    timespec time;
    clock_gettime(threads_ == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  KernelRegistry registry_;
  static constexpr size_t kAlignment = size_t{2} << 20;
  int threads_;
  bool huge_pages_;
  DType dtype_;
  double (*peak_)(int64_t iterations) = nullptr;
  std::vector<std::unique_ptr<char, void (*)(void*)>> buffers_;
};

KernelAttributes Attributes(std::vector<std::pair<std::string, KernelAttributes::Value>> entries) {
  KernelAttributes attributes;
  for (auto& [name, value] : entries) attributes.Add(name, std::move(value));
  return attributes;
}

void BenchMatmuls(Bench& bench, int64_t rows) {
  const struct {
    int64_t k, n;
  } shapes[] = {{768, 2304}, {768, 768}, {768, 3072}, {3072, 768}};
  for (const auto& [k, n] : shapes) {
    const double flops = 2.0 * rows * n * k;
    const std::string shape = std::to_string(k) + "x" + std::to_string(n);
    bench.Run(("x W + b      " + shape).c_str(), "matmul",
              {{bench.Data({rows, k}), bench.Data({k, n}), bench.Data({n}), {}}, {bench.Data({rows, n})}, {}},
              {}, flops, 0);
    bench.Run(("x W^T        " + shape).c_str(), "matmul",
              {{bench.Data({rows, k}), bench.Data({n, k}), {}, {}}, {bench.Data({rows, n})}, {}},
              Attributes({{"transpose_b", int64_t{1}}}), flops, 0);
    bench.Run(("dy W^T       " + shape).c_str(), "matmul",
              {{bench.Data({rows, n}), bench.Data({k, n}), {}, {}}, {bench.Data({rows, k})}, {}},
              Attributes({{"transpose_b", int64_t{1}}}), flops, 0);
    bench.Run(("x^T dy       " + shape).c_str(), "matmul",
              {{bench.Data({rows, k}), bench.Data({rows, n}), {}, {}}, {bench.Data({k, n})}, {}},
              Attributes({{"transpose_a", int64_t{1}}}), flops, 0);
  }
}

void BenchHead(Bench& bench, int64_t batch, int64_t positions) {
  const int64_t rows = batch * positions, vocabulary = 50257, width = 768;
  const Tensor x = bench.Data({rows, width}), weight = bench.Data({vocabulary, width}),
               targets = bench.Make({rows}, DType::kI32);
  bench.Run("linear_cross_entropy_loss_grad", "linear_cross_entropy_loss_grad",
            {{x, weight, targets, {}, {}},
             {bench.Make({}), bench.Data({rows, width}), bench.Data({vocabulary, width})},
             bench.Workspace(LinearCrossEntropyWorkspace(rows, vocabulary))},
            Attributes({{"dloss", 1.0}}), 6.0 * rows * vocabulary * width, 0);
}

void BenchAttention(Bench& bench, int64_t batch, int64_t positions, int64_t heads, int64_t kv_heads) {
  const int64_t width = heads * 64, kv_width = kv_heads * 64;
  const KernelAttributes attributes =
      Attributes({{"heads", heads}, {"kv_heads", kv_heads}, {"causal", int64_t{1}}});
  auto wide = [&] { return bench.Data({batch, positions, width}); };
  auto narrow = [&] { return bench.Data({batch, positions, kv_width}); };
  const double flops = 4.0 * batch * positions * (positions + 1) / 2 * width;
  bench.Run("attention", "attention",
            {{wide(), narrow(), narrow(), {}, {}, {}}, {wide(), bench.Make({batch, heads, positions})}, {}},
            attributes, flops, 0);
  bench.Run("attention_grad", "attention_grad",
            {{wide(), wide(), narrow(), narrow(), wide(), bench.Make({batch, heads, positions}), {}, {}, {}},
             {wide(), narrow(), narrow()},
             bench.Workspace(
                 AttentionGradWorkspace({batch, positions, heads, kv_heads, width / heads, DType::kBF16}))},
            attributes, 2.5 * flops, 0);
}

void BenchRows(Bench& bench, int64_t rows) {
  const int64_t width = 768;
  const double n = bench.DataBytes() * rows * width;
  auto x = [&](int64_t columns) { return bench.Data({rows, columns}); };
  bench.Run("split in 3", "split", {{x(3 * width)}, {x(width), x(width), x(width)}, {}}, {}, 0, 6 * n);
}

void BenchOptimizer(Bench& bench) {
  const int64_t n = 124439808 / kBlockElements * kBlockElements;
  const double bytes = 4.0 * n;
  auto flat = [&] { return bench.Make({n}); };
  bench.Run("copy", "copy", {{flat()}, {flat()}, {}}, {}, 0, 2 * bytes);
  bench.Run("fill", "fill", {{}, {flat()}, {}}, Attributes({{"value", 0.0}}), 0, bytes);
  bench.Run("sum_squares", "sum_squares", {{flat(), {}}, {bench.Make({kAccumulatorWords}, DType::kI64)}, {}},
            {}, 0, bytes);
  const ParameterRange all = {.begin = 0, .end = n, .number = 3};
  Tensor parameter = flat();
  parameter.parameters = absl::MakeConstSpan(&all, 1);
  bench.Run("init_normal", "init_normal", {{bench.Make({3}, DType::kI64)}, {parameter}, {}},
            Attributes({{"parameter", int64_t{3}}, {"value", 0.02}}), 0, bytes);
}

}  // namespace
}  // namespace ft

int main(int argc, char** argv) {
  CLI::App app("Times the CPU kernels at the shapes of GPT-2 124M: the best of several runs, per kernel.");
  int threads = 2;
  int64_t batch = 4, positions = 64;
  std::string isa_name(ft::cpu::Name(ft::cpu::BestIsa())), pages = "huge", dtype_name = "f32";
  const std::map<std::string, ft::DType> dtypes = {
      {"f32", ft::DType::kF32}, {"bf16", ft::DType::kBF16}, {"f16", ft::DType::kF16}};
  std::map<std::string, ft::cpu::Isa> isas;
  for (ft::cpu::Isa isa : ft::cpu::UsableIsas()) isas.emplace(ft::cpu::Name(isa), isa);
  app.add_option("--threads", threads, "Threads of each kernel")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  app.add_option("--batch", batch, "Sequences")->capture_default_str()->check(CLI::Range(1, 4096));
  app.add_option("--positions", positions, "Tokens of each")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--isa", isa_name, "Instruction set")->capture_default_str()->check(CLI::IsMember(&isas));
  app.add_option("--pages", pages, "huge, or small")
      ->capture_default_str()
      ->check(CLI::IsMember({"huge", "small"}));
  app.add_option("--dtype", dtype_name, "Type of the operands")
      ->capture_default_str()
      ->check(CLI::IsMember(&dtypes));
  CLI11_PARSE(app, argc, argv);
  std::printf("%s, %d threads, batch %ld x %ld, %s\n", isa_name.c_str(), threads, batch, positions,
              dtype_name.c_str());
  ft::Bench bench(isas.at(isa_name), threads, pages == "huge", dtypes.at(dtype_name));
  ft::BenchMatmuls(bench, batch * positions);
  ft::BenchHead(bench, batch, positions);
  ft::BenchAttention(bench, batch, positions, 12, 12);
  ft::BenchAttention(bench, 2, 512, 8, 2);
  ft::BenchAttention(bench, 1, 2048, 8, 2);
  ft::BenchRows(bench, batch * positions);
  ft::BenchOptimizer(bench);
  return 0;
}
