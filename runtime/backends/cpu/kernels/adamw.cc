// adamw and adam: weight decay applied to the parameter, or as part of the gradient.
#include <cmath>

#include "runtime/backends/cpu/parameter_update.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/routines/optimizer.h"

namespace ft::cpu {
namespace {

struct Hyperparameters {
  double beta1, beta2, eps, weight_decay;
};

absl::StatusOr<Hyperparameters> ReadHyperparameters(const KernelAttributes& attributes) {
  Hyperparameters h;
  FT_ASSIGN_OR_RETURN(h.beta1, FloatIn(attributes, "beta1", 0.0, 1.0));
  FT_ASSIGN_OR_RETURN(h.beta2, FloatIn(attributes, "beta2", 0.0, 1.0));
  FT_ASSIGN_OR_RETURN(h.eps, FloatIn(attributes, "eps", 0.0));
  FT_ASSIGN_OR_RETURN(h.weight_decay, FloatIn(attributes, "weight_decay"));
  return h;
}

// Factors of step `step` (from 0), decay excepted.
AdamFactors FactorsOf(const Hyperparameters& h, float clip, double lr, int64_t step) {
  const double t = static_cast<double>(step) + 1.0;
  AdamFactors factors;
  factors.clip = clip;
  factors.decay = 0.0f;
  factors.one_minus_beta1 = static_cast<float>(1.0 - h.beta1);
  factors.beta2 = static_cast<float>(h.beta2);
  factors.one_minus_beta2 = static_cast<float>(1.0 - h.beta2);
  factors.sqrt_correction2 = static_cast<float>(std::sqrt(1.0 - std::pow(h.beta2, t)));
  factors.eps = static_cast<float>(h.eps);
  factors.step_size = static_cast<float>(lr / (1.0 - std::pow(h.beta1, t)));
  return factors;
}

template <bool kDecoupled>
KernelOr MakeAdam(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(ParameterUpdate update, ReadParameterUpdate(context, 2));
  FT_ASSIGN_OR_RETURN(const Hyperparameters hyper, ReadHyperparameters(context.attributes));
  const OptimizerRoutines& routines = context.routines.optimizer;
  return MakeKernel([=, routine = kDecoupled ? routines.adamw : routines.adam, update = std::move(update),
                     exp_avg = context.out(1).as<float>(), exp_avg_sq = context.out(2).as<float>()] {
    if (update.Skipped()) return update.RefreshCopy();
    const double lr = double{*update.lr};
    AdamFactors plain = FactorsOf(hyper, *update.coefficient, lr, *update.step);
    AdamFactors decaying = plain;
    plain.decay = kDecoupled ? 1.0f : 0.0f;
    decaying.decay = static_cast<float>(kDecoupled ? 1.0 - lr * hyper.weight_decay : hyper.weight_decay);
    update.Run([&](const float* gradient, float* parameter, int64_t begin, int64_t n, bool decay) {
      const AdamArgs args = {gradient, parameter, exp_avg + begin, exp_avg_sq + begin};
      routine(args, decay ? decaying : plain, 0, n);
    });
  });
}

}  // namespace

void RegisterAdamw(KernelRegistry& registry, Isa isa) {
  Add<MakeAdam<true>>(registry, "adamw", isa);
  Add<MakeAdam<false>>(registry, "adam", isa);
}

}  // namespace ft::cpu
