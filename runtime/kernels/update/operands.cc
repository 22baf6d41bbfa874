#include "runtime/kernels/update/operands.h"

#include <algorithm>

#include "fmt/format.h"
#include "runtime/base/checked.h"
#include "runtime/base/flat_layout.h"
#include "runtime/base/philox.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/step_scalar_formulas.h"
#include "runtime/device/check.h"

namespace ft {
namespace {

absl::Status CheckBody(const UpdateOperands& o) {
  const ClusterBody& body = o.body;
  FT_RETURN_IF_ERROR(CheckClusterBody(body));
  if (body.elements() != kBlockElements || body.last_columns != body.columns || !body.IsFlat())
    return absl::InvalidArgumentError(
        fmt::format("its body is not one of {} elements, one by one", kBlockElements));
  const auto is_other = [](const ClusterBody::Buffer& buffer, DType dtype, int64_t elements) {
    return buffer.state || buffer.dtype != dtype || buffer.elements != elements;
  };
  for (size_t i = 0; i < body.inputs.size(); ++i)
    if (i < o.in.size() ? is_other(body.inputs[i], o.in[i].dtype, kBlockElements)
                        : is_other(body.inputs[i], DType::kF32, 1))
      return absl::InvalidArgumentError(fmt::format("operand {} of its body is another", i));
  for (const ClusterBody::Read& read : body.reads)
    if (read.input < o.in.size() && read.place != body.Whole())
      return absl::InvalidArgumentError(
          fmt::format("its body reads one element of operand {} alone", read.input));
  for (size_t i = 0; i < body.results.size(); ++i) {
    const DType dtype = i == 0 && o.rng != nullptr ? DType::kF32 : o.out[i].dtype;
    if (is_other(body.results[i], dtype, kBlockElements))
      return absl::InvalidArgumentError(fmt::format("result {} of its body is another", i));
  }
  return absl::OkStatus();
}

absl::Status CheckTensors(const UpdateOperands& o) {
  if (o.elements % kBlockElements != 0 || o.out[0].flat_begin % kBlockElements != 0)
    return absl::InvalidArgumentError(
        fmt::format("the slice is not of whole blocks of {} elements", kBlockElements));
  for (size_t i = 0; i < o.in.size(); ++i)
    FT_RETURN_IF_ERROR(CheckFloatSize(o.in[i],
                                      i == 0                ? "gradient"
                                      : i < o.first_state() ? "parameter"
                                                            : "state",
                                      o.elements));
  for (size_t i = 0; i < o.out.size(); ++i) {
    const bool is_copy = !o.is_direction && i + 1 >= o.in.size();
    FT_RETURN_IF_ERROR(CheckFloatSize(o.out[i],
                                      is_copy  ? "working copy"
                                      : i == 0 ? "result"
                                               : "state",
                                      o.elements));
  }
  for (size_t i = o.first_state(); i < o.in.size(); ++i)
    if (o.in[i].dtype != DType::kF32) return absl::InvalidArgumentError("a state must be f32");
  if (o.is_direction) return absl::OkStatus();
  const bool has_copy = o.out.size() == o.in.size();
  if (o.in[1].dtype == DType::kF32)
    return has_copy && o.out.back().dtype == DType::kF32
               ? absl::InvalidArgumentError(
                     "working copy must be bf16 or f16: in f32 the parameter is its own")
               : absl::OkStatus();
  if (o.in[1].dtype != DType::kBF16)
    return absl::InvalidArgumentError("parameter must be f32 or, without a master, bf16");
  return has_copy ? absl::InvalidArgumentError("a bf16 parameter has no working copy") : absl::OkStatus();
}

// Sets rng and step, where it rounds stochastically.
absl::Status ReadRounding(const KernelOperands& operands, UpdateOperands& o) {
  if (operands.in.size() == 2) return absl::OkStatus();
  if (operands.in.size() != 4)
    return absl::InvalidArgumentError("beside gradient and scalars it takes rng and step, or neither");
  if (o.is_direction) return absl::InvalidArgumentError("a direction is not rounded stochastically");
  if (o.in[1].dtype != DType::kBF16)
    return absl::InvalidArgumentError("what is rounded stochastically is a parameter in bf16");
  FT_RETURN_IF_ERROR(CheckSize(operands.in[2], "rng", 3, DType::kI64));
  FT_RETURN_IF_ERROR(CheckSize(operands.in[3], "step", 1, DType::kI64));
  o.rng = operands.in[2].as<int64_t>();
  o.step = operands.in[3].as<int64_t>();
  return absl::OkStatus();
}

// The parameters' parts of the slice, joined where they are alike.
absl::StatusOr<std::vector<UpdateRun>> RunsOf(const Tensor& slice, bool is_stochastic) {
  std::vector<UpdateRun> runs;
  for (const ParameterRange& parameter : slice.parameters) {
    if (parameter.begin % kBlockElements != 0)
      return absl::InvalidArgumentError(
          fmt::format("a parameter begins at {}, which is no block", parameter.begin));
    const int64_t begin = std::max<int64_t>(0, parameter.begin - slice.flat_begin);
    int64_t end = std::min(slice.elements(), parameter.end - slice.flat_begin);
    if (begin >= end) continue;
    if (is_stochastic) {
      runs.push_back({begin, end, parameter.decays, begin + slice.flat_begin - parameter.begin,
                      kFirstRoundingStream + parameter.number});
      continue;
    }
    end = CeilDiv(end, kBlockElements) * kBlockElements;
    if (!runs.empty() && runs.back().end == begin && runs.back().decays == parameter.decays) {
      runs.back().end = end;
    } else {
      runs.push_back({begin, end, parameter.decays, 0, 0});
    }
  }
  return runs;
}

}  // namespace

void UpdateOperands::SetAddresses(int64_t at, bool decays, void** addresses) const {
  const auto add = [&](const Tensor& tensor) {
    *addresses++ = tensor.as<char>() + at * static_cast<int64_t>(SizeOf(tensor.dtype));
  };
  for (const Tensor& tensor : in) add(tensor);
  const float* row = scalars + (decays ? num_scalars : 0);
  for (int64_t i = 0; i < num_scalars; ++i) *addresses++ = const_cast<float*>(row + i);
  for (const Tensor& tensor : out) add(tensor);
}

std::vector<void*> UpdateOperands::Addresses(int64_t at, bool decays) const {
  std::vector<void*> addresses(num_addresses());
  SetAddresses(at, decays, addresses.data());
  return addresses;
}

ClusterBody UpdateOperands::BodyOver(int64_t of_elements) const {
  ClusterBody whole = body;
  whole.rows = of_elements / body.columns;
  for (size_t i = 0; i < in.size(); ++i) whole.inputs[i].elements = of_elements;
  for (ClusterBody::Read& read : whole.reads)
    if (read.input < in.size()) read.place = whole.Whole();
  for (ClusterBody::Buffer& result : whole.results) result.elements = of_elements;
  for (ClusterBody::Output& output : whole.outputs) output.place = whole.Whole();
  return whole;
}

absl::StatusOr<UpdateOperands> ReadUpdateOperands(const KernelOperands& operands,
                                                  const KernelAttributes& attributes) {
  if (attributes.cluster() == nullptr) return absl::InvalidArgumentError("it has no body");
  UpdateOperands o;
  o.body = attributes.cluster()->body;
  if (operands.in.size() < 2 || operands.out.empty() || operands.out.size() != o.body.results.size())
    return absl::InvalidArgumentError(fmt::format("it has {} operands and {} results, its body {} results",
                                                  operands.in.size(), operands.out.size(),
                                                  o.body.results.size()));
  o.elements = operands.in[0].elements();
  o.is_direction = attributes.Has("direction");
  o.in = {operands.in[0]};
  o.out = operands.out;
  // A copy is the only result that is none of the operands.
  const Tensor& scalars = operands.in[1];
  FT_RETURN_IF_ERROR(CheckNotEmpty(scalars, "scalars", DType::kF32));
  o.num_scalars = scalars.elements() / 2;
  o.scalars = scalars.as<float>();
  const int64_t states =
      static_cast<int64_t>(o.body.inputs.size()) - static_cast<int64_t>(o.first_state()) - o.num_scalars;
  const int64_t copies = static_cast<int64_t>(o.out.size()) - 1 - states;
  if (scalars.elements() % 2 != 0 || o.num_scalars < 1 || states < 0 || copies < 0 ||
      copies > (o.is_direction ? 0 : 1))
    return absl::InvalidArgumentError(
        fmt::format("{} scalars and {} results are not those of its body of {} operands", o.num_scalars,
                    o.out.size(), o.body.inputs.size()));
  o.in.insert(o.in.end(), o.out.begin() + (o.is_direction ? 1 : 0), o.out.end() - copies);
  FT_RETURN_IF_ERROR(ReadRounding(operands, o));
  FT_RETURN_IF_ERROR(CheckTensors(o));
  FT_RETURN_IF_ERROR(CheckBody(o));
  FT_RETURN_IF_ERROR(CheckFlat(o.out[0], "result"));
  FT_ASSIGN_OR_RETURN(o.runs, RunsOf(o.out[0], o.rng != nullptr));
  return o;
}

absl::StatusOr<ScalarOperands> ReadScalarOperands(const KernelOperands& operands,
                                                  const KernelAttributes& attributes) {
  const bool averages = operands.in.size() == 4;
  FT_RETURN_IF_ERROR(CheckCounts(operands, averages ? 4 : 3, 1));
  FT_RETURN_IF_ERROR(CheckSize(operands.in[0], "coefficient", 1));
  FT_RETURN_IF_ERROR(CheckSize(operands.in[1], "lr", 1));
  FT_RETURN_IF_ERROR(CheckSize(operands.in[2], "step", 1, DType::kI64));
  if (averages) FT_RETURN_IF_ERROR(CheckSize(operands.in[3], "inverse_ranks", 1));
  FT_ASSIGN_OR_RETURN(const std::string formulas, attributes.String("formulas"));
  FT_ASSIGN_OR_RETURN(const double weight_decay, FloatIn(attributes, "weight_decay", 0.0));
  ScalarOperands result;
  result.coefficient = operands.in[0].as<float>();
  result.lr = operands.in[1].as<float>();
  result.step = operands.in[2].as<int64_t>();
  result.inverse_ranks = averages ? operands.in[3].as<float>() : nullptr;
  result.scalars = operands.out[0].as<float>();
  FT_ASSIGN_OR_RETURN(result.formulas, ReadStepScalars(formulas, weight_decay));
  if (UsesInverseRanks(result.formulas) && !averages)
    return absl::InvalidArgumentError("a formula names inverse_ranks, which it is not given");
  FT_RETURN_IF_ERROR(CheckSize(operands.out[0], "scalars", int64_t{2} * result.formulas.count));
  return result;
}

}  // namespace ft
