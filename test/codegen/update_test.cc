// Every optimizer of the table, as the passes make it, over several steps against the same loops in f64: by
// the walker of every instruction set, by its code, by the code for GPUs and their walker, in fp32, with
// 16-bit gradients, copies, and weights.
#include <array>
#include <cmath>
#include <cstring>
#include <functional>

#include "compiler/codegen/cluster_body.h"
#include "compiler/codegen/plan_code.h"
#include "compiler/codegen/testing/code_test.h"
#include "compiler/optimizer/rules.h"
#include "dialects/ft/updates.h"
#include "fmt/format.h"
#include "llvm/Support/Error.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "runtime/backends/cpu/cpu_kernel.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/plan/plan_clusters.h"
#include "test/codegen/emulated_kernel.h"
#include "test/codegen/optimizer_loops.h"
#include "test/conformance/case.h"
#include "test/doubles/cuda/reference_products.h"

namespace ft::compiler::testing {
namespace {

using namespace mlir;

constexpr int64_t kCount = 6 * 1024, kSteps = 6;
constexpr double kDecay = 0.1;
// Two parameters; the second does not decay, and has several blocks of elements in a slice. What lies between
// and behind them is padding.
constexpr const char* kModule = R"(
ft.unit @u {{elements = 6144 : i64{unit}}}
ft.parameter @w : tensor<10x100xf32> = #ft.init<normal, 0.02> {{offset = 0 : i64, unit = @u}}
ft.parameter @b : tensor<4x1237xf32> = #ft.init<constant, 0.0> {{no_decay, offset = 1024 : i64, unit = @u}}
func.func @train_step() -> tensor<f32> {{
  %loss = ft.fill 1.0 : tensor<f32>
  %w = ft.fill 4.0 : tensor<10x100x{gradient}>
  %b = ft.fill 2.0 : tensor<4x1237x{gradient}>
  %g = ft.pack %w, %b at [@w, @b] : (tensor<10x100x{gradient}>, tensor<4x1237x{gradient}>) -> !ft.flat<@u, {gradient}>
  return %loss : tensor<f32>
}})";

const std::vector<ParameterRange> kParameters = {{0, 1000, true, 0}, {1024, 5972, false, 1}};

bool inside(int64_t i) { return i < 1000 || (i >= 1024 && i < 5972); }

// How gradient and weights lie in memory.
struct Memory {
  const char* label;
  const char* gradient;
  const char* unit;
  DType gradientType, parameter, copy;  // copy: f32 for none
  bool stochastic = false;
};
constexpr Memory kMemories[] = {
    {"fp32", "f32", "", DType::kF32, DType::kF32, DType::kF32},
    {"bf16 gradient and copy", "bf16", ", compute = bf16, reduce = bf16, working_copy", DType::kBF16,
     DType::kF32, DType::kBF16},
    {"fp16 gradient and copy", "f16", ", compute = f16, reduce = f16, working_copy", DType::kF16, DType::kF32,
     DType::kF16},
    {"bf16 weights", "f32", ", compute = bf16, master = bf16", DType::kF32, DType::kBF16, DType::kF32},
    {"bf16 weights, rounded stochastically", "f32", ", compute = bf16, master = bf16", DType::kF32,
     DType::kBF16, DType::kF32, true},
};

class EmulatedCode final : public cuda::LoadedCode {
 public:
  explicit EmulatedCode(const EmulatedKernel& kernel) : kernel_(kernel) {}
  int Launch(absl::Span<void* const> addresses, int64_t spaces, cuda::StreamHandle) const override {
    return kernel_.call(addresses.data(), /*descending=*/true, spaces).empty() ? 0 : 1;
  }

 private:
  const EmulatedKernel& kernel_;
};

class EmulatedLoader final : public cuda::CodeLoader {
 public:
  explicit EmulatedLoader(const EmulatedKernel& kernel) : kernel_(kernel) {}
  absl::StatusOr<std::shared_ptr<const cuda::LoadedCode>> Load(const ClusterCode&) override {
    return std::make_shared<EmulatedCode>(kernel_);
  }

 private:
  const EmulatedKernel& kernel_;
};

// A buffer of elements of a type that is computed with.
struct Floats {
  explicit Floats(DType dtype) : dtype(dtype), bytes(kCount * SizeOf(dtype) + 64) {}
  Floats(const Floats&) = delete;  // the values of a copy would lie elsewhere in its bytes
  Floats(Floats&&) = default;

  Tensor tensor(int64_t begin = 0, int64_t end = kCount) {
    return {
        data() + begin * static_cast<int64_t>(SizeOf(dtype)), dtype, 1, {end - begin}, begin, kParameters};
  }
  char* data() { return bytes.data() + (64 - reinterpret_cast<uintptr_t>(bytes.data()) % 64) % 64; }
  bool operator==(const Floats& other) const { return values() == other.values(); }
  std::string values() const {
    return {const_cast<Floats*>(this)->data(), static_cast<size_t>(kCount) * SizeOf(dtype)};
  }

  DType dtype;
  std::vector<char> bytes;
};

struct Job {
  std::vector<Floats> buffers;  // parameter, states, and the copy
  std::vector<std::string> values() const {
    std::vector<std::string> all;
    for (const Floats& buffer : buffers) all.push_back(buffer.values());
    return all;
  }
  bool operator==(const Job& other) const { return values() == other.values(); }
};

// What runs the kernels of an update.
struct Runner {
  std::string label;
  std::function<void(const char* kernel, const KernelOperands&, const KernelAttributes&)> run;
};

class UpdateTest : public CodeTest {
 protected:
  // The cluster of the update that the passes make, with code for all targets.
  void make(const Optimizer& optimizer, const Memory& memory) {
    const bool isRule = !findOptimizerRule(optimizer.name)->others.empty();
    const std::string unit = memory.unit + (isRule ? fmt::format(", rule = \"{}\"", optimizer.name) : "");
    std::string text = fmt::format(kModule, fmt::arg("unit", unit), fmt::arg("gradient", memory.gradient));
    module_ = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module_);
    PassManager passes(&context);
    InsertOptimizerPassOptions options;
    options.optimizer = optimizer.name;
    options.stochasticRounding = memory.stochastic;
    optimizer.set(options);
    passes.addPass(createInsertOptimizerPass(options));
    passes.addPass(createVerifyOptimizerPass());
    passes.addPass(createFormUpdatesPass());
    ASSERT_TRUE(succeeded(passes.run(*module_)));
    mlir::ft::UpdateOp update;
    module_->walk([&](mlir::ft::UpdateOp op) {
      if (static_cast<bool>(op.getDirection()) == optimizer.isDirection) update = op;
    });
    auto scalars = update.getScalars().getDefiningOp<mlir::ft::UpdateScalarsOp>();
    states_ = static_cast<int>(update.getStates().size());
    body_ = mlir::ft::bodyOf(update);
    formulas_ = scalars.getFormulas().str();
    scalars_.assign(scalars.getScalars().getType().getNumElements(), 0.0f);
    proto::Plan plan;
    FailureOr<ClusterBody> facts = clusterBodyOf(body_);
    ASSERT_TRUE(succeeded(facts));
    *plan.add_clusters() = ToProto(*facts);
    ASSERT_TRUE(makeCode(plan, {"all"}).ok());
    coded_ = ClustersOf(plan)->front();
    plain_ = std::make_shared<Cluster>(Cluster{coded_->body, {}, nullptr});
    is_direction_ = optimizer.isDirection;
    is_rounded_ = update.roundsStochastically();
  }

  KernelAttributes attributes(bool coded) const {
    KernelAttributes attributes;
    if (is_direction_) attributes.Add("direction", true);
    attributes.SetCluster(coded ? coded_ : plain_);
    return attributes;
  }

  void convert(const Floats& from, Floats& to) {
    KernelRegistry registry;
    RegisterCpuKernels(registry);
    runCpu(registry, "cast", {{const_cast<Floats&>(from).tensor()}, {to.tensor()}, {}}, {}, 1);
  }

  static void runCpu(const KernelRegistry& registry, const char* name, const KernelOperands& operands,
                     const KernelAttributes& attributes, int threads) {
    auto kernel = registry.Find(name)(operands, attributes, {threads});
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    static_cast<CpuKernel&>(**kernel).Run();
  }

  void runCuda(const char* name, const KernelOperands& operands, const KernelAttributes& attributes,
               cuda::CodeLoader* loader) {
    cuda::KernelTable table;
    cuda::RegisterUpdate(table);
    cuda::KernelOr kernel = table.Find(name)({.operands = operands,
                                              .attributes = attributes,
                                              .properties = properties_,
                                              .products = products_,
                                              .attention = nullptr,
                                              .attention_choice = cuda::AttentionChoice::kOwn,
                                              .code = loader,
                                              .notes = notes_});
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    ASSERT_EQ(static_cast<cuda::CudaKernel&>(**kernel).Launch(nullptr), 0);
  }

  static bool hasCopy(const Optimizer& optimizer, const Memory& memory) {
    return memory.copy != DType::kF32 && !optimizer.isDirection;
  }

  // Weights about 1, states of 0; padding is 0.
  Job begin(const Optimizer& optimizer, const Memory& memory) {
    Floats wide(DType::kF32);
    auto* values = reinterpret_cast<float*>(wide.data());
    for (int64_t i = 0; i < kCount; ++i) values[i] = inside(i) ? std::cos(0.11f * float(i)) * 2 : 0.0f;
    Job job;
    job.buffers.emplace_back(optimizer.isDirection ? memory.gradientType : memory.parameter);
    convert(wide, job.buffers[0]);
    for (int i = 0; i < states_; ++i) job.buffers.emplace_back(DType::kF32);
    if (hasCopy(optimizer, memory)) job.buffers.emplace_back(memory.copy);
    return job;
  }

  Floats gradientOf(const Memory& memory, int64_t step) {
    Floats wide(DType::kF32), narrow(memory.gradientType);
    auto* values = reinterpret_cast<float*>(wide.data());
    for (int64_t i = 0; i < kCount; ++i)
      values[i] = inside(i) ? std::sin(0.37f * float(i + 700 * step)) : 0.0f;
    convert(wide, narrow);
    return narrow;
  }

  void step(const Runner& runner, Job& job, Floats& gradient, float coefficient, float lr, int64_t step,
            bool coded, const std::vector<int64_t>& cuts = {0, kCount}) {
    const Tensor table = {scalars_.data(), DType::kF32, 1, {static_cast<int64_t>(scalars_.size())}};
    float inverse = kInverseRanks;
    runner.run("update_scalars", {{{&coefficient}, {&lr}, {&step, DType::kI64}, {&inverse}}, {table}, {}},
               conformance::Attributes({{"formulas", formulas_}, {"weight_decay", kDecay}}));
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      KernelOperands operands = {{gradient.tensor(cuts[i], cuts[i + 1]), table}, {}, {}};
      if (is_rounded_)
        operands.in.insert(operands.in.end(), {{rng_.data(), DType::kI64, 1, {3}}, {&step, DType::kI64}});
      for (Floats& buffer : job.buffers) operands.out.push_back(buffer.tensor(cuts[i], cuts[i + 1]));
      operands.workspace = {workspace_.data(), DType::kU8, 1, {static_cast<int64_t>(workspace_.size())}};
      runner.run("update", operands, attributes(coded));
    }
  }

  Job stepsOf(const Runner& runner, const Optimizer& optimizer, const Memory& memory, bool coded,
              const std::vector<int64_t>& cuts = {0, kCount}) {
    Job job = begin(optimizer, memory);
    for (int64_t k = 0; k < kSteps; ++k) {
      Floats gradient = gradientOf(memory, k);
      step(runner, job, gradient, kCoefficient, float(optimizer.lr), k, coded, cuts);
    }
    return job;
  }

  Runner onCpu(cpu::Isa isa, int threads) {
    auto registry = std::make_shared<KernelRegistry>();
    RegisterCpuKernels(*registry, isa);
    return {std::string(cpu::Name(isa)),
            [=](const char* name, const KernelOperands& operands, const KernelAttributes& attributes) {
              runCpu(*registry, name, operands, attributes, threads);
            }};
  }
  Runner onCuda(cuda::CodeLoader* loader) {
    return {loader ? "code for GPUs" : "walker of GPUs",
            [=, this](const char* name, const KernelOperands& operands, const KernelAttributes& attributes) {
              runCuda(name, operands, attributes, loader);
            }};
  }

  OwningOpRef<ModuleOp> module_;
  func::FuncOp body_;
  int states_ = 0;
  bool is_direction_ = false, is_rounded_ = false;
  std::string formulas_;
  std::vector<float> scalars_;
  std::shared_ptr<Cluster> coded_, plain_;
  std::vector<int64_t> rng_ = {99, 4, 1};
  std::vector<char> workspace_ = std::vector<char>(kRoundingElements * 4);
  const cuda::DeviceProperties properties_;
  cuda::emulation::ReferenceProducts products_;
  std::vector<std::string> notes_;
};

TEST_F(UpdateTest, EveryOptimizerOfTheTableIsHere) {
  for (const OptimizerRule& rule : optimizerRules())
    EXPECT_TRUE(llvm::any_of(optimizers(), [&](const Optimizer& o) { return o.name == rule.name; }))
        << rule.name;
}

TEST_F(UpdateTest, FollowsTheLoopInF64) {
  for (const Optimizer& optimizer : optimizers())
    for (const Memory& memory : kMemories) {
      if (memory.parameter != DType::kF32) continue;
      SCOPED_TRACE(std::string(optimizer.label) + ", " + memory.label);
      make(optimizer, memory);
      if (optimizer.isDirection && memory.gradientType != DType::kF32) continue;
      Job start = begin(optimizer, memory),
          job = stepsOf(onCpu(cpu::Isa::kGeneric, 1), optimizer, memory, false);
      const auto* first = reinterpret_cast<float*>(start.buffers[0].data());
      const auto* last = reinterpret_cast<float*>(job.buffers[0].data());
      std::vector<double> p(first, first + kCount);
      std::vector<std::array<double, 2>> s(kCount, {0, 0});
      std::vector<bool> sure(kCount, true);
      for (int64_t k = 0; k < kSteps; ++k) {
        Floats gradient = gradientOf(memory, k), wide(DType::kF32);
        convert(gradient, wide);
        const auto* g = reinterpret_cast<float*>(wide.data());
        for (int64_t i = 0; i < kCount; ++i)
          if (!optimizer.step(p[i], kCoefficient * (double{kInverseRanks} * g[i]), double(k + 1),
                              i < 1000 ? kDecay : 0, float(optimizer.lr), s[i].data()))
            sure[i] = false;
      }
      for (int64_t i = 0; i < kCount; ++i) {
        if (!inside(i)) {
          ASSERT_EQ(last[i], 0.0f) << i;
        } else if (sure[i]) {
          // Each step rounds the parameter, below 4, to half an ulp, 2^-23, and the step itself, below 8 lr,
          // by a few ulp of it: 8 * 2^-24 * 8 * 0.01 < 2^-24.
          ASSERT_NEAR(last[i], p[i], kSteps * (0x1p-23 + 0x1p-24)) << i;
        }
      }
    }
}

TEST_F(UpdateTest, EveryKernelGivesTheSameBitsInEverySlice) {
  for (const Optimizer& optimizer : optimizers())
    for (const Memory& memory : kMemories) {
      SCOPED_TRACE(std::string(optimizer.label) + ", " + memory.label);
      make(optimizer, memory);
      const Job expected = stepsOf(onCpu(cpu::Isa::kGeneric, 1), optimizer, memory, false);
      EXPECT_FALSE(expected == begin(optimizer, memory));
      for (cpu::Isa isa : cpu::UsableIsas())
        for (bool coded : {false, true})
          EXPECT_TRUE(stepsOf(onCpu(isa, 2), optimizer, memory, coded, {0, 1024, kCount}) == expected)
              << cpu::Name(isa) << (coded ? ", its code" : ", walked");
      auto emulated = EmulatedKernel::of(body_);
      ASSERT_TRUE(static_cast<bool>(emulated));
      EmulatedLoader loader(*emulated);
      for (cuda::CodeLoader* each :
           {static_cast<cuda::CodeLoader*>(nullptr), static_cast<cuda::CodeLoader*>(&loader)}) {
        // Powers are computed otherwise there: one step, with the scalars of the CPU.
        Job ours = begin(optimizer, memory), theirs = begin(optimizer, memory);
        Floats gradient = gradientOf(memory, 0);
        step(onCpu(cpu::Isa::kGeneric, 1), ours, gradient, kCoefficient, float(optimizer.lr), 0, false);
        coded_->loaded = nullptr;
        step(onCuda(each), theirs, gradient, kCoefficient, float(optimizer.lr), 0, each != nullptr,
             {0, 2048, kCount});
        EXPECT_TRUE(theirs == ours) << (each ? "code for GPUs" : "walker of GPUs");
      }
    }
}

// Nothing but the copy is written: it may lie in a buffer that nobody filled.
TEST_F(UpdateTest, TouchesNothingWhenTheStepIsSkipped) {
  for (const Optimizer& optimizer : optimizers())
    for (const Memory& memory : kMemories) {
      SCOPED_TRACE(std::string(optimizer.label) + ", " + memory.label);
      make(optimizer, memory);
      for (bool coded : {false, true}) {
        const Runner runner = onCpu(cpu::BestIsa(), 2);
        Job job = stepsOf(runner, optimizer, memory, coded);
        const std::vector<std::string> before = job.values();
        if (hasCopy(optimizer, memory)) std::memset(job.buffers.back().data(), 0x77, kCount * 2);
        Floats gradient = gradientOf(memory, 9);
        for (int64_t i = 0; i < 100; ++i)
          std::memset(gradient.data() + i * int64_t(SizeOf(gradient.dtype)), 0xFF,
                      SizeOf(gradient.dtype));  // NaN
        step(runner, job, gradient, NAN, float(optimizer.lr), kSteps, coded);
        std::vector<std::string> after = job.values();
        if (optimizer.isDirection) after[0] = before[0];  // which nobody applies
        EXPECT_TRUE(after == before);
      }
    }
}

}  // namespace
}  // namespace ft::compiler::testing
