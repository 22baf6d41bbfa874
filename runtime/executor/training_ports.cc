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

// The ports of one program.
class PortFinder {
 public:
  PortFinder(const proto::Plan& plan, const Executor& executor, int program)
      : name_(plan.programs(program).name()), executor_(executor), program_(program) {}

  template <typename T>
  absl::StatusOr<T*> Input(const char* port, int64_t elements, bool required) const {
    return Check<T>(executor_.Input(program_, port), port, elements, required);
  }
  template <typename T>
  absl::StatusOr<T*> Output(const char* port, int64_t elements, bool required) const {
    return Check<T>(executor_.Output(program_, port), port, elements, required);
  }

  absl::StatusOr<void*> OfModel(const proto::Input& input) const {
    const char* port = input.name().c_str();
    const Tensor tensor = executor_.Input(program_, port);
    int64_t elements = 1;
    for (const uint64_t extent : input.shape()) elements *= static_cast<int64_t>(extent);
    return CheckType(tensor, port, static_cast<DType>(input.dtype()), elements, true);
  }

  absl::StatusOr<absl::Span<float>> Scaler() const {
    const Tensor tensor = executor_.Input(program_, "scaler");
    const int64_t elements = tensor.present() && tensor.elements() == 2 ? 2 : 3;
    FT_ASSIGN_OR_RETURN(float* const data, Check<float>(tensor, "scaler", elements, false));
    return absl::MakeSpan(data, data == nullptr ? 0 : elements);
  }

 private:
  template <typename T>
  absl::StatusOr<T*> Check(const Tensor& tensor, const char* port, int64_t elements, bool required) const {
    FT_ASSIGN_OR_RETURN(void* const data, CheckType(tensor, port, kTypeOf<T>, elements, required));
    return static_cast<T*>(data);
  }

  absl::StatusOr<void*> CheckType(const Tensor& tensor, const char* port, DType dtype, int64_t elements,
                                  bool required) const {
    if (!tensor.present()) {
      if (!required) return nullptr;
      return absl::FailedPreconditionError(absl::StrCat("the plan's ", name_, " has no port '", port, "'"));
    }
    if (tensor.dtype != dtype || tensor.elements() != elements) {
      return absl::FailedPreconditionError(absl::StrCat(
          "port '", port, "' of the plan's ", name_, " holds ", tensor.elements(), " elements of ",
          std::string(Name(tensor.dtype)), ", expected ", elements, " of ", std::string(Name(dtype))));
    }
    return tensor.data;
  }

  const std::string& name_;
  const Executor& executor_;
  const int program_;
};

}  // namespace

absl::StatusOr<TrainingPorts> FindTrainingPorts(const proto::Plan& plan, const Executor& executor,
                                                int program) {
  const PortFinder finder(plan, executor, program);
  TrainingPorts ports;
  FT_ASSIGN_OR_RETURN(ports.batch, FindBatchPorts(plan, executor, program));
  FT_ASSIGN_OR_RETURN(ports.lr, finder.Input<float>("lr", 1, false));
  FT_ASSIGN_OR_RETURN(ports.step, finder.Input<int64_t>("step", 1, false));
  FT_ASSIGN_OR_RETURN(ports.scaler, finder.Scaler());
  FT_ASSIGN_OR_RETURN(ports.loss, finder.Output<float>("loss", 1, true));
  FT_ASSIGN_OR_RETURN(ports.grad_norm, finder.Output<float>("grad_norm", 1, false));
  FT_ASSIGN_OR_RETURN(const int64_t* const counted, finder.Output<int64_t>("counted", 2, false));
  if (counted != nullptr) ports.counted = absl::MakeConstSpan(counted, 2);
  return ports;
}

absl::StatusOr<BatchPorts> FindBatchPorts(const proto::Plan& plan, const Executor& executor, int program) {
  const PortFinder finder(plan, executor, program);
  BatchPorts ports;
  for (const proto::Input& input : plan.inputs()) {
    FT_ASSIGN_OR_RETURN(void* const place, finder.OfModel(input));
    ports.inputs.push_back(place);
  }
  FT_ASSIGN_OR_RETURN(ports.rng, FindRngPort(plan, executor, program));
  FT_ASSIGN_OR_RETURN(ports.inverse_ranks, finder.Input<float>("inverse_ranks", 1, false));
  return ports;
}

absl::StatusOr<const float*> FindSumPort(const proto::Plan& plan, const Executor& executor, int program,
                                         const std::string& name) {
  return PortFinder(plan, executor, program).Output<float>(name.c_str(), 2, true);
}

absl::StatusOr<int64_t*> FindRngPort(const proto::Plan& plan, const Executor& executor, int program) {
  return PortFinder(plan, executor, program).Input<int64_t>("rng", 3, false);
}

void WriteInverseRanks(float* inverse_ranks, int world_size) {
  if (inverse_ranks != nullptr) *inverse_ranks = 1.0f / static_cast<float>(world_size);
}

void WriteUpdate(const TrainingPorts& ports, double lr, int64_t applied) {
  if (ports.lr != nullptr) *ports.lr = static_cast<float>(lr);
  if (ports.step != nullptr) *ports.step = applied;
}

void WriteRng(int64_t* rng, uint64_t seed, int64_t micro_step, int rank) {
  if (rng == nullptr) return;
  rng[0] = static_cast<int64_t>(seed);
  rng[1] = micro_step;
  rng[2] = rank;
}

}  // namespace ft
