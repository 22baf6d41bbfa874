#include <cmath>
#include <vector>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/backends/cpu/routines/optimizer.h"

namespace ft::cpu {
namespace {

// A part of this slice that lies inside one parameter.
struct Piece {
  int64_t begin;
  int64_t end;
  bool decay;
};

// The parameters' parts of [flat_begin, flat_begin + elements), cut to at most kGrain elements each.
absl::StatusOr<std::vector<Piece>> CutSegments(const std::vector<int64_t>& segments, int64_t flat_begin,
                                               int64_t elements) {
  if (segments.size() % 3 != 0)
    return absl::InvalidArgumentError("'segments' must be triples: begin, end, decay");
  std::vector<Piece> pieces;
  for (size_t i = 0; i < segments.size(); i += 3) {
    const int64_t begin = std::max<int64_t>(0, segments[i] - flat_begin);
    const int64_t end = std::min(elements, segments[i + 1] - flat_begin);
    for (int64_t at = begin; at < end; at += kGrain) {
      pieces.push_back({at, std::min(end, at + kGrain), segments[i + 2] != 0});
    }
  }
  return pieces;
}

struct Hyperparameters {
  double beta1, beta2, eps, weight_decay;
};

absl::StatusOr<Hyperparameters> ReadHyperparameters(const KernelAttributes& attributes) {
  Hyperparameters h;
  FT_ASSIGN_OR_RETURN(h.beta1, attributes.Float("beta1"));
  FT_ASSIGN_OR_RETURN(h.beta2, attributes.Float("beta2"));
  FT_ASSIGN_OR_RETURN(h.eps, attributes.Float("eps"));
  FT_ASSIGN_OR_RETURN(h.weight_decay, attributes.Float("weight_decay"));
  return h;
}

// Factors of step `step` (from 0), without decay.
AdamwFactors FactorsOf(const Hyperparameters& h, float clip, double lr, int64_t step) {
  const double t = static_cast<double>(step) + 1.0;
  AdamwFactors factors;
  factors.clip = clip;
  factors.decay = 1.0f;
  factors.one_minus_beta1 = static_cast<float>(1.0 - h.beta1);
  factors.beta2 = static_cast<float>(h.beta2);
  factors.one_minus_beta2 = static_cast<float>(1.0 - h.beta2);
  factors.sqrt_correction2 = static_cast<float>(std::sqrt(1.0 - std::pow(h.beta2, t)));
  factors.eps = static_cast<float>(h.eps);
  factors.step_size = static_cast<float>(lr / (1.0 - std::pow(h.beta1, t)));
  return factors;
}

KernelOr MakeAdamw(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 4, 3));
  const Tensor &gradient = context.in(0), &parameter = context.out(0);
  FT_RETURN_IF_ERROR(CheckPresent(gradient, "gradient"));
  FT_RETURN_IF_ERROR(CheckSize(context.in(1), "coefficient", 1));
  FT_RETURN_IF_ERROR(CheckSize(context.in(2), "lr", 1));
  FT_RETURN_IF_ERROR(CheckSize(context.in(3), "step", 1, DType::kI64));
  const char* const names[] = {"parameter", "exp_avg", "exp_avg_sq"};
  for (size_t i = 0; i < 3; ++i) {
    FT_RETURN_IF_ERROR(CheckSize(context.out(i), names[i], gradient.elements()));
  }
  FT_ASSIGN_OR_RETURN(const Hyperparameters hyper, ReadHyperparameters(context.attributes));
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> segments, context.attributes.Ints("segments"));
  FT_ASSIGN_OR_RETURN(std::vector<Piece> pieces,
                      CutSegments(segments, parameter.flat_begin, parameter.elements()));
  const AdamwArgs args = {gradient.as<float>(), parameter.as<float>(), context.out(1).as<float>(),
                          context.out(2).as<float>()};
  const int threads = ThreadsFor(context.num_threads, 4 * gradient.elements());
  return MakeKernel([=, routine = context.routines.optimizer.adamw, pieces = std::move(pieces),
                     coefficient = context.in(1).as<float>(), lr = context.in(2).as<float>(),
                     step = context.in(3).as<int64_t>()] {
    const AdamwFactors plain = FactorsOf(hyper, *coefficient, *lr, *step);
    AdamwFactors decaying = plain;
    decaying.decay = static_cast<float>(1.0 - double{*lr} * hyper.weight_decay);
    ParallelFor(static_cast<int64_t>(pieces.size()), threads, [&](int64_t i) {
      routine(args, pieces[i].decay ? decaying : plain, pieces[i].begin, pieces[i].end);
    });
  });
}

}  // namespace

void RegisterAdamw(KernelRegistry& registry, Isa isa) { Add<MakeAdamw>(registry, "adamw", isa); }

}  // namespace ft::cpu
