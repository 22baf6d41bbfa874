#include "runtime/backends/cpu/parameter_update.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/routines/optimizer.h"

namespace ft::cpu {
namespace {

KernelOr MakeSgd(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const double momentum, FloatIn(context.attributes, "momentum"));
  FT_ASSIGN_OR_RETURN(const double weight_decay, FloatIn(context.attributes, "weight_decay"));
  FT_ASSIGN_OR_RETURN(const bool nesterov, Flag(context.attributes, "nesterov"));
  const bool buffered = momentum != 0.0;
  if (nesterov && !buffered) return absl::InvalidArgumentError("'nesterov' takes a 'momentum' other than 0");
  FT_ASSIGN_OR_RETURN(ParameterUpdate update, ReadParameterUpdate(context, buffered ? 1 : 0));
  const OptimizerRoutines& routines = context.routines.optimizer;
  const auto routine = nesterov ? routines.sgd_nesterov : buffered ? routines.sgd_momentum : routines.sgd;
  return MakeKernel(
      [=, update = std::move(update), buffer = buffered ? context.out(1).as<float>() : nullptr] {
        if (update.Skipped()) return update.RefreshCopy();
        const SgdFactors plain = {*update.coefficient, 0.0f, static_cast<float>(momentum), *update.lr};
        SgdFactors decaying = plain;
        decaying.decay = static_cast<float>(weight_decay);
        update.Run([&](const float* gradient, float* parameter, int64_t begin, int64_t n, bool decay) {
          const SgdArgs args = {gradient, parameter, buffered ? buffer + begin : nullptr};
          routine(args, decay ? decaying : plain, 0, n);
        });
      });
}

}  // namespace

void RegisterSgd(KernelRegistry& registry, Isa isa) { Add<MakeSgd>(registry, "sgd", isa); }

}  // namespace ft::cpu
