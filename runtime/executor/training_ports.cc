#include "runtime/executor/training_ports.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

template <typename T>
constexpr DType kTypeOf = DType::kF32;
template <>
constexpr DType kTypeOf<int32_t> = DType::kI32;
template <>
constexpr DType kTypeOf<int64_t> = DType::kI64;

template <typename T>
absl::StatusOr<T*> Check(const Tensor& tensor, const char* name, int64_t elements, bool required) {
  if (!tensor.present()) {
    if (!required) return nullptr;
    return absl::FailedPreconditionError(absl::StrCat("the plan's train_step has no port '", name, "'"));
  }
  if (tensor.dtype != kTypeOf<T> || tensor.elements() != elements) {
    return absl::FailedPreconditionError(absl::StrCat(
        "port '", name, "' of the plan holds ", tensor.elements(), " elements of ",
        std::string(Name(tensor.dtype)), ", expected ", elements, " of ", std::string(Name(kTypeOf<T>))));
  }
  return tensor.as<T>();
}

}  // namespace

absl::StatusOr<TrainingPorts> FindTrainingPorts(const proto::Plan& plan, const Executor& executor,
                                                int program) {
  TrainingPorts ports;
  const int64_t tokens = static_cast<int64_t>(plan.batch() * plan.seq_len());
  FT_ASSIGN_OR_RETURN(ports.tokens,
                      Check<int32_t>(executor.Input(program, "tokens"), "tokens", tokens, true));
  FT_ASSIGN_OR_RETURN(ports.targets,
                      Check<int32_t>(executor.Input(program, "targets"), "targets", tokens, true));
  FT_ASSIGN_OR_RETURN(ports.lr, Check<float>(executor.Input(program, "lr"), "lr", 1, false));
  FT_ASSIGN_OR_RETURN(ports.step, Check<int64_t>(executor.Input(program, "step"), "step", 1, false));
  FT_ASSIGN_OR_RETURN(ports.rng, FindRngPort(executor, program));
  FT_ASSIGN_OR_RETURN(ports.loss, Check<float>(executor.Output(program, "loss"), "loss", 1, true));
  FT_ASSIGN_OR_RETURN(ports.grad_norm,
                      Check<float>(executor.Output(program, "grad_norm"), "grad_norm", 1, false));
  return ports;
}

absl::StatusOr<int64_t*> FindRngPort(const Executor& executor, int program) {
  return Check<int64_t>(executor.Input(program, "rng"), "rng", 3, false);
}

}  // namespace ft
