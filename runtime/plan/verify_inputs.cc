// The inputs of the model: what each may be, that every program that takes examples has a port for each, and
// that what is not an input of the model is one of the executor's own. The outputs of evaluation.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "runtime/base/dtype.h"
#include "runtime/base/load_element.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/inputs.h"
#include "runtime/plan/verify_parts.h"
#include "runtime/plan/verify_place.h"

namespace ft {
namespace {

constexpr uint64_t kMaxIds = uint64_t{1} << 31;
constexpr uint64_t kMaxInputElements = uint64_t{1} << 44;
constexpr int kMaxInputRank = 8;
constexpr std::string_view kOwnInputs[] = {"lr", "step", "rng", "scaler", "inverse_ranks", "sample_position"};
constexpr std::string_view kTakeExamples[] = {"train_micro", "train_step", "eval_step"};

// "input 'pixels'" in front of what is wrong with it.
template <typename... Parts>
absl::Status Invalid(const proto::Input& input, const Parts&... parts) {
  return absl::InvalidArgumentError(
      absl::StrCat("invalid plan: input ", Quote(input.name()), ": ", parts...));
}

absl::Status VerifyShape(const proto::Plan& plan, const proto::Input& input) {
  if (input.shape_size() > kMaxInputRank) return Invalid(input, "it has ", input.shape_size(), " dimensions");
  uint64_t elements = 1;
  for (const uint64_t extent : input.shape()) {
    if (extent == 0 || extent > kMaxInputElements / elements)
      return Invalid(input, "it has an impossible dimension of ", extent);
    elements *= extent;
  }
  if (IsConstant(input)) return absl::OkStatus();
  if (input.shape_size() == 0 || input.shape(0) != plan.batch())
    return Invalid(input, "its first dimension is not the batch of ", plan.batch());
  if (IsOfTokens(input.filling()) && input.filling() != proto::Input::LENGTHS &&
      input.shape(1) != plan.seq_len())
    return Invalid(input, "it does not hold sequences of ", plan.seq_len());
  return absl::OkStatus();
}

absl::Status VerifyIds(const proto::Plan& plan, const proto::Input& input) {
  const bool integer = IsInteger(static_cast<DType>(input.dtype()));
  if (input.ids_below() >= kMaxIds || (input.ids_below() > 0 && !integer))
    return Invalid(input, "it cannot choose among ", input.ids_below());
  if ((input.may_be_left_out() && input.ids_below() == 0) || (input.counted() && !input.may_be_left_out()))
    return Invalid(input, "no loss can leave out what it has");
  if (input.filling() == proto::Input::TOKENS || input.filling() == proto::Input::TARGETS) {
    if (input.ids_below() != plan.vocab_size())
      return Invalid(input, "it chooses among ", input.ids_below(), ", not the vocabulary of ",
                     plan.vocab_size());
  }
  return absl::OkStatus();
}

// Elements of a value are of the range that its type and its use allow.
template <typename T>
absl::Status VerifyElements(const proto::Input& input, T least, T below) {
  for (size_t at = 0; at < input.value().size(); at += sizeof(T)) {
    const T element = LoadElement<T>(input.value().data() + at);
    if (element < least || element >= below)
      return Invalid(input, "its value has ", +element, ", outside of ", +least, " ... ", below - 1);
  }
  return absl::OkStatus();
}

absl::Status VerifyValue(const proto::Input& input) {
  const bool is_value = input.filling() == proto::Input::VALUE;
  if (!is_value && !input.value().empty()) return Invalid(input, "it has a value, but is filled by data");
  if (!is_value) return absl::OkStatus();
  if (input.value().size() != ExampleBytes(input))
    return Invalid(input, "its value has ", input.value().size(), " bytes, not ", ExampleBytes(input));
  if (input.dtype() == proto::U8) return VerifyElements<uint8_t>(input, 0, 2);
  if (input.ids_below() == 0) return absl::OkStatus();
  const auto below = static_cast<int64_t>(input.ids_below());
  return input.dtype() == proto::I32 ? VerifyElements<int32_t>(input, 0, static_cast<int32_t>(below))
                                     : VerifyElements<int64_t>(input, 0, below);
}

absl::Status VerifyInput(const proto::Plan& plan, const proto::Input& input) {
  if (!IsSignatureName(input.name()) || IsReservedName(input.name()))
    return Invalid(input, "an input cannot be called so");
  if (!proto::DType_IsValid(input.dtype()) || !IsInputType(static_cast<DType>(input.dtype())) ||
      !proto::Input::Filling_IsValid(input.filling()))
    return Invalid(input, "it has an unknown type or filling");
  if (!CanBeFilled(input.filling(), static_cast<DType>(input.dtype()), input.shape_size()))
    return Invalid(input, "no sequences of tokens fill an input of its type");
  FT_RETURN_IF_ERROR(VerifyShape(plan, input));
  FT_RETURN_IF_ERROR(VerifyIds(plan, input));
  return VerifyValue(input);
}

absl::Status VerifyTable(const proto::Plan& plan) {
  if (plan.inputs_size() > kMaxInputs)
    return absl::InvalidArgumentError(absl::StrCat("invalid plan: it has ", plan.inputs_size(), " inputs"));
  std::set<std::string_view> names;
  std::set<int> fillings;
  int counted = 0;
  for (const proto::Input& input : plan.inputs()) {
    FT_RETURN_IF_ERROR(VerifyInput(plan, input));
    if (!names.insert(input.name()).second) return Invalid(input, "there are two of this name");
    if (IsOfTokens(input.filling()) && !fillings.insert(input.filling()).second)
      return Invalid(input, "another one is filled by the same");
    if (input.counted() && ++counted > 1) return Invalid(input, "the loss counts another one");
  }
  return absl::OkStatus();
}

absl::Status VerifyTokenizer(const proto::Plan& plan) {
  const std::string& hash = plan.tokenizer_hash();
  if (hash.empty() || (hash.size() == 16 && hash.find_first_not_of("0123456789abcdef") == std::string::npos))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("invalid plan: the tokenizer's hash ", Quote(hash), " is no 16 hexadecimal digits"));
}

bool IsOfInput(const proto::Operand& operand, const proto::Input& input) {
  return !operand.whole() && !operand.own_slice() && operand.dtype() == input.dtype() &&
         std::equal(operand.shape().begin(), operand.shape().end(), input.shape().begin(),
                    input.shape().end());
}

bool Contains(absl::Span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsInput(const proto::Plan& plan, std::string_view name) {
  return std::any_of(plan.inputs().begin(), plan.inputs().end(),
                     [&](const proto::Input& input) { return input.name() == name; });
}

// Every port is filled, each for itself; programs that take examples take all inputs.
absl::Status VerifyInputPorts(const proto::Plan& plan, int program) {
  const std::string& name = plan.programs(program).name();
  std::map<std::string_view, const proto::Port*> ports;
  std::set<uint32_t> buffers;
  for (const proto::Port& port : plan.programs(program).inputs()) {
    const Place place{.plan = plan, .program = program, .port = &port};
    if (!ports.emplace(port.name(), &port).second) return place.Invalid("there are two of this name");
    if (!buffers.insert(port.operand().buffer_plus_one()).second)
      return place.Invalid("another input lies in its buffer");
    const bool of_model = name != "init" && IsInput(plan, port.name());
    if (!Contains(kOwnInputs, port.name()) && !of_model) return place.Invalid("nothing fills it");
  }
  for (const proto::Input& input : plan.inputs()) {
    const auto port = ports.find(input.name());
    if (port == ports.end() && !Contains(kTakeExamples, name)) continue;
    if (port == ports.end()) return Invalid(input, name, " does not take it");
    if (!IsOfInput(port->second->operand(), input))
      return Place{.plan = plan, .program = program, .port = port->second}.Invalid(
          "it is not of the type and shape of the input");
  }
  return absl::OkStatus();
}

// Sums that evaluation reports.
absl::Status VerifyEvaluation(const proto::Plan& plan, int program) {
  const proto::Program& evaluation = plan.programs(program);
  if (evaluation.outputs_size() > 1 + kMaxOutputs)
    return absl::InvalidArgumentError(
        absl::StrCat("invalid plan: eval_step has ", evaluation.outputs_size(), " outputs"));
  std::set<std::string_view> names;
  for (const proto::Port& port : evaluation.outputs()) {
    const Place place{.plan = plan, .program = program, .port = &port};
    if (!names.insert(port.name()).second) return place.Invalid("there are two of this name");
    if (port.name() != "loss_sum" && (!IsSignatureName(port.name()) || IsReservedName(port.name())))
      return place.Invalid("an output cannot be called so");
    const proto::Operand& operand = port.operand();
    if (operand.dtype() != proto::F32 || operand.shape_size() != 1 || operand.shape(0) != 2)
      return place.Invalid("it is no sum and count");
  }
  return absl::OkStatus();
}

// The logits of one position in each sequence.
absl::Status VerifySample(const proto::Plan& plan, int program) {
  const proto::Program& sample = plan.programs(program);
  bool has_tokens = false, has_position = false;
  for (const proto::Port& port : sample.inputs()) {
    const proto::Operand& operand = port.operand();
    if (port.name() == "sample_position") {
      has_position = true;
      if (operand.dtype() != proto::I32 || operand.whole() || operand.shape_size() != 0)
        return Place{.plan = plan, .program = program, .port = &port}.Invalid("it is no i32");
    }
    for (const proto::Input& input : plan.inputs())
      has_tokens |= input.name() == port.name() && input.filling() == proto::Input::TOKENS;
  }
  if (!has_tokens || !has_position || sample.outputs_size() != 1)
    return absl::InvalidArgumentError(
        "invalid plan: sample_step does not make logits of tokens and a position");
  const proto::Port& port = sample.outputs(0);
  const proto::Operand& operand = port.operand();
  const Place place{.plan = plan, .program = program, .port = &port};
  if (port.name() != "sample_logits") return place.Invalid("nothing reads it");
  if (!IsFloat(static_cast<DType>(operand.dtype())) || operand.shape_size() != 2 ||
      operand.shape(0) != plan.batch() || operand.shape(1) == 0 || operand.shape(1) >= kMaxIds)
    return place.Invalid("it does not hold logits of each sequence");
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyInputs(const proto::Plan& plan) {
  FT_RETURN_IF_ERROR(VerifyTable(plan));
  FT_RETURN_IF_ERROR(VerifyTokenizer(plan));
  for (int p = 0; p < plan.programs_size(); ++p) {
    const std::string& name = plan.programs(p).name();
    FT_RETURN_IF_ERROR(VerifyInputPorts(plan, p));
    if (name == "eval_step") FT_RETURN_IF_ERROR(VerifyEvaluation(plan, p));
    if (name == "sample_step") FT_RETURN_IF_ERROR(VerifySample(plan, p));
  }
  return absl::OkStatus();
}

}  // namespace ft
