// AdamW, Adam and SGD over several steps against the same loops in f64; 16-bit gradients and working copies;
// skipped steps.
#include <bit>
#include <cstring>

#include "test/conformance/exact_fixture.h"

namespace ft {
namespace {

constexpr int64_t kCount = 3 * 1024, kSteps = 12;
constexpr double kLr = 1e-2, kDecay = 0.1, kCoefficient = 0.75;
// Two parameters; the second does not decay. What lies between and behind them is padding.
const std::vector<int64_t> kSegments = {0, 1000, 1, 1024, 2900, 0};

bool Inside(int64_t i) { return i < 1000 || (i >= 1024 && i < 2900); }

struct Optimizer {
  const char* label;
  const char* kernel;
  KernelAttributes attributes;
  size_t states;
  // One step of one element in f64: g is the clipped gradient, t counts from 1, s its states, decay is 0 or
  // kDecay.
  double (*step)(double p, double g, double t, double decay, double lr, double* s);
};

double AdamStep(double p, double g, double t, double lr, double* s) {
  s[0] = 0.9 * s[0] + 0.1 * g;
  s[1] = 0.95 * s[1] + 0.05 * g * g;
  return p - lr / (1 - std::pow(0.9, t)) * s[0] / (std::sqrt(s[1]) / std::sqrt(1 - std::pow(0.95, t)) + 1e-8);
}

KernelAttributes SgdAttributes(double momentum, int64_t nesterov) {
  return conformance::Attributes(
      {{"momentum", momentum}, {"nesterov", nesterov}, {"weight_decay", kDecay}, {"segments", kSegments}});
}

std::vector<Optimizer> Optimizers() {
  const KernelAttributes adam = conformance::Attributes(
      {{"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-8}, {"weight_decay", kDecay}, {"segments", kSegments}});
  return {
      {"AdamW", "adamw", adam, 2,
       [](double p, double g, double t, double decay, double lr, double* s) {
         return AdamStep(p * (1 - lr * decay), g, t, lr, s);
       }},
      {"Adam", "adam", adam, 2,
       [](double p, double g, double t, double decay, double lr, double* s) {
         return AdamStep(p, g + decay * p, t, lr, s);
       }},
      {"SGD", "sgd", SgdAttributes(0, 0), 0,
       [](double p, double g, double, double decay, double lr, double*) { return p - lr * (g + decay * p); }},
      {"SGD with momentum", "sgd", SgdAttributes(0.9, 0), 1,
       [](double p, double g, double t, double decay, double lr, double* s) {
         g += decay * p;
         s[0] = t == 1 ? g : 0.9 * s[0] + g;  // as torch.optim.SGD begins
         return p - lr * s[0];
       }},
      {"SGD with Nesterov's momentum", "sgd", SgdAttributes(0.9, 1), 1,
       [](double p, double g, double t, double decay, double lr, double* s) {
         g += decay * p;
         s[0] = t == 1 ? g : 0.9 * s[0] + g;
         return p - lr * (g + 0.9 * s[0]);
       }}};
}

class OptimizerKernels : public CpuExact {
 protected:
  // Everything that a step of one optimizer touches.
  struct Job {
    std::vector<float> parameter;
    std::vector<std::vector<float>> states;
    std::vector<uint16_t> working_copy;

    bool operator==(const Job&) const = default;
  };

  Job Begin(const Optimizer& optimizer) const {
    return {{parameter_.begin(), parameter_.begin() + kCount},
            std::vector<std::vector<float>>(optimizer.states, std::vector<float>(kCount, 0.0f)),
            std::vector<uint16_t>(kCount, 0x7777)};
  }

  // The gradient of a step as it lies in memory, and what it stands for.
  struct Gradient {
    std::vector<uint16_t> narrow;
    std::vector<float> wide;
    DType dtype;

    Tensor tensor() { return dtype == DType::kF32 ? Whole(wide, dtype) : Whole(narrow, dtype); }
  };

  Gradient GradientOf(const Backend& backend, int64_t step, DType dtype) {
    Gradient gradient = {std::vector<uint16_t>(kCount), std::vector<float>(kCount), dtype};
    for (int64_t i = 0; i < kCount; ++i) gradient.wide[i] = gradient_[(i * 7 + step * 1013) % kElements];
    if (dtype != DType::kF32) {
      const Tensor wide = Whole(gradient.wide, DType::kF32);
      RunKernel(backend.registry, "cast", {{wide}, {gradient.tensor()}, {}}, {}, 1);
      RunKernel(backend.registry, "cast", {{gradient.tensor()}, {wide}, {}}, {}, 1);
    }
    return gradient;
  }

  void Step(const Backend& backend, const Optimizer& optimizer, Job& job, Gradient& gradient,
            float coefficient, int64_t step, DType copy, int threads) {
    float lr = static_cast<float>(kLr);
    KernelOperands operands = {{gradient.tensor(), Scalar(coefficient), Scalar(lr), Scalar(step)},
                               {Whole(job.parameter, DType::kF32)},
                               {}};
    for (auto& state : job.states) operands.out.push_back(Whole(state, DType::kF32));
    if (copy != DType::kF32) operands.out.push_back(Whole(job.working_copy, copy));
    RunKernel(backend.registry, optimizer.kernel, operands, optimizer.attributes, threads);
  }
};

TEST_F(OptimizerKernels, FollowTheLoopInF64) {
  for (const Optimizer& optimizer : Optimizers()) {
    for (Backend& backend : backends_) {
      for (DType dtype : conformance::kFloats) {
        SCOPED_TRACE(std::string(optimizer.label) + ", gradient " + std::string(Name(dtype)));
        Job job = Begin(optimizer);
        const std::vector<float> start = job.parameter;
        std::vector<double> p(start.begin(), start.end());
        std::vector<std::array<double, 2>> s(kCount, {0, 0});
        for (int64_t step = 0; step < kSteps; ++step) {
          Gradient gradient = GradientOf(backend, step, dtype);
          Step(backend, optimizer, job, gradient, kCoefficient, step, DType::kF32, 1);
          const double lr = static_cast<float>(kLr);
          for (int64_t i = 0; i < kCount; ++i) {
            p[i] = optimizer.step(p[i], kCoefficient * gradient.wide[i], double(step + 1),
                                  i < 1000 ? kDecay : 0, lr, s[i].data());
          }
        }
        for (int64_t i = 0; i < kCount; ++i) {
          if (!Inside(i)) {
            ASSERT_EQ(job.parameter[i], start[i]) << i;
            continue;
          }
          // Each step rounds the parameter (below 8) to half an ulp, 2^-22, and the step itself, below 64 lr,
          // by a few ulp of it: 8 * 2^-24 * 64 * 0.01 < 2^-21.
          ASSERT_NEAR(job.parameter[i], p[i], kSteps * (0x1p-22 + 0x1p-21)) << i;
        }
      }
    }
  }
}

// The working copy is the parameter rounded, in every dtype; it changes nothing else.
TEST_F(OptimizerKernels, WriteTheWorkingCopy) {
  for (const Optimizer& optimizer : Optimizers()) {
    for (Backend& backend : backends_) {
      for (DType dtype : conformance::kFloats) {
        Job plain = Begin(optimizer);
        Gradient gradient = GradientOf(backend, 0, dtype);
        Step(backend, optimizer, plain, gradient, kCoefficient, 0, DType::kF32, 1);
        for (DType copy : {DType::kBF16, DType::kF16}) {
          Job job = Begin(optimizer);
          Step(backend, optimizer, job, gradient, kCoefficient, 0, copy, 2);
          std::vector<uint16_t> rounded(kCount);
          RunKernel(backend.registry, "cast",
                    {{Whole(job.parameter, DType::kF32)}, {Whole(rounded, copy)}, {}}, {}, 1);
          for (int64_t i = 0; i < kCount; ++i) {
            ASSERT_EQ(job.working_copy[i], Inside(i) ? rounded[i] : 0x7777) << optimizer.label << " " << i;
          }
          job.working_copy = plain.working_copy;
          EXPECT_EQ(job, plain) << optimizer.label;
        }
      }
    }
  }
}

TEST_F(OptimizerKernels, TouchNothingWhenTheStepIsSkipped) {
  for (const Optimizer& optimizer : Optimizers()) {
    for (Backend& backend : backends_) {
      for (DType dtype : conformance::kFloats) {
        Job job = Begin(optimizer);
        Gradient gradient = GradientOf(backend, 0, dtype);
        Step(backend, optimizer, job, gradient, kCoefficient, 0, DType::kBF16, 1);
        const Job before = job;
        gradient = GradientOf(backend, 1, dtype);
        // The copy is made again: it may lie in a buffer that nobody filled.
        std::fill(job.working_copy.begin(), job.working_copy.end(), 0x7777);
        Step(backend, optimizer, job, gradient, NAN, 1, DType::kBF16, 2);
        EXPECT_EQ(job, before) << optimizer.label;
        Step(backend, optimizer, job, gradient, kCoefficient, 1, DType::kBF16, 2);
        EXPECT_NE(job.parameter, before.parameter) << optimizer.label;
      }
    }
  }
}

TEST_F(OptimizerKernels, RefuseOperandsThatDoNotFit) {
  for (const Optimizer& optimizer : Optimizers()) {
    Job job = Begin(optimizer);
    Gradient gradient = GradientOf(backends_[0], 0, DType::kF32);
    float lr = 1, coefficient = 1;
    int64_t step = 0;
    KernelOperands good = {{gradient.tensor(), Scalar(coefficient), Scalar(lr), Scalar(step)},
                           {Whole(job.parameter, DType::kF32)},
                           {}};
    for (auto& state : job.states) good.out.push_back(Whole(state, DType::kF32));
    const KernelFactory factory = backends_[0].registry.Find(optimizer.kernel);
    EXPECT_TRUE(factory(good, optimizer.attributes, {1}).ok());
    KernelOperands with_absent_copy = good;
    with_absent_copy.out.emplace_back();
    EXPECT_TRUE(factory(with_absent_copy, optimizer.attributes, {1}).ok());
    auto refused = [&](KernelOperands operands) {
      EXPECT_EQ(factory(operands, optimizer.attributes, {1}).status().code(),
                absl::StatusCode::kInvalidArgument)
          << optimizer.label;
    };
    KernelOperands bad = good;
    bad.out.push_back(Whole(job.parameter, DType::kF32));  // an f32 copy
    refused(bad);
    bad = good;
    bad.out[0].dims[0] -= 1024;
    refused(bad);
    bad = good;
    bad.out[0].dtype = DType::kF16;
    refused(bad);
    bad = good;
    bad.in[3].dtype = DType::kF32;
    refused(bad);
    bad = good;
    bad.out.clear();
    refused(bad);
  }
}

}  // namespace
}  // namespace ft
