#include "runtime/plan/inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

namespace ft {
namespace {

constexpr std::pair<std::string_view, proto::Input::Filling> kFillings[] = {
    {"tokens", proto::Input::TOKENS},
    {"input_ids", proto::Input::TOKENS},
    {"targets", proto::Input::TARGETS},
    {"labels", proto::Input::LABELS},
    {"positions", proto::Input::POSITIONS},
    {"position_ids", proto::Input::POSITIONS},
    {"segments", proto::Input::SEGMENTS},
    {"lengths", proto::Input::LENGTHS},
    {"attention_mask", proto::Input::ATTENTION_MASK},
    {"token_types", proto::Input::TOKEN_TYPES},
    {"token_type_ids", proto::Input::TOKEN_TYPES},
};

constexpr std::string_view kReserved[] = {
    "lr",        "step",    "rng",      "scaler",          "inverse_ranks", "loss",
    "grad_norm", "counted", "loss_sum", "sample_position", "sample_logits"};

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Behind the batch.
int FirstOfExample(const proto::Input& input) { return IsConstant(input) ? 0 : 1; }

// Of an element for each index of the extents from `first` on.
uint64_t BytesFrom(const proto::Input& input, int first) {
  uint64_t bytes = SizeOf(static_cast<DType>(input.dtype()));
  for (int i = first; i < input.shape_size(); ++i) bytes *= input.shape(i);
  return bytes;
}

}  // namespace

bool IsSignatureName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxInputName && IsLetter(name[0]) &&
         std::all_of(name.begin(), name.end(), [](char c) { return IsLetter(c) || IsDigit(c); });
}

bool IsReservedName(std::string_view name) {
  return std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved);
}

std::optional<proto::Input::Filling> FillingOf(std::string_view name) {
  for (const auto& [known, filling] : kFillings) {
    if (known == name) return filling;
  }
  return std::nullopt;
}

bool IsOfTokens(proto::Input::Filling filling) {
  return filling != proto::Input::TENSOR && filling != proto::Input::CONSTANT &&
         filling != proto::Input::VALUE;
}

bool CanBeFilled(proto::Input::Filling filling, DType dtype, int rank) {
  if (!IsOfTokens(filling)) return true;
  const bool truths = filling == proto::Input::ATTENTION_MASK && dtype == DType::kU8;
  return (IsInteger(dtype) || truths) && rank == (filling == proto::Input::LENGTHS ? 1 : 2);
}

std::string_view FillingText(proto::Input::Filling filling) {
  switch (filling) {
    case proto::Input::TENSOR:
      return "a row of the tensor of its name";
    case proto::Input::CONSTANT:
      return "the tensor of its name, the same for all examples";
    case proto::Input::TOKENS:
      return "the tokens";
    case proto::Input::TARGETS:
      return "the token after each; -100: not counted";
    case proto::Input::POSITIONS:
      return "positions, from 0 in each document";
    case proto::Input::SEGMENTS:
      return "which document of the sequence a token is of";
    case proto::Input::VALUE:
      return "a value of the plan";
    case proto::Input::LABELS:
      return "the tokens themselves, for the model to shift; -100: not counted";
    case proto::Input::LENGTHS:
      return "how many tokens there are, padding behind";
    case proto::Input::ATTENTION_MASK:
      return "1 for tokens, 0 for padding";
    case proto::Input::TOKEN_TYPES:
      return "0, the first of two texts";
    default:
      return "";
  }
}

bool IsConstant(const proto::Input& input) {
  return input.filling() == proto::Input::CONSTANT || input.filling() == proto::Input::VALUE;
}

bool IsInputType(DType dtype) {
  return IsInteger(dtype) || dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kU8;
}

std::string_view InputTypeName(DType dtype) { return dtype == DType::kU8 ? "i1" : Name(dtype); }

std::vector<int64_t> ExampleShape(const proto::Input& input) {
  std::vector<int64_t> shape;
  for (int i = FirstOfExample(input); i < input.shape_size(); ++i)
    shape.push_back(static_cast<int64_t>(input.shape(i)));
  return shape;
}

uint64_t ExampleBytes(const proto::Input& input) { return BytesFrom(input, FirstOfExample(input)); }

uint64_t BatchBytes(const proto::Plan& plan) {
  uint64_t all = 0;
  for (const proto::Input& input : plan.inputs()) all += BytesFrom(input, 0);
  return all;
}

std::string ExampleText(const proto::Input& input) {
  return fmt::format("{} [{}]", InputTypeName(static_cast<DType>(input.dtype())),
                     fmt::join(ExampleShape(input), ", "));
}

bool TakesTokens(const proto::Plan& plan) {
  return std::any_of(plan.inputs().begin(), plan.inputs().end(), [](const proto::Input& input) {
    return input.filling() == proto::Input::TOKENS || input.filling() == proto::Input::TARGETS;
  });
}

std::string_view CountedWord(const proto::Plan& plan) { return TakesTokens(plan) ? "tokens" : "examples"; }

std::string_view ExampleWord(const proto::Plan& plan) { return TakesTokens(plan) ? "sequences" : "examples"; }

std::string BatchText(const proto::Plan& plan) {
  return TakesTokens(plan) ? fmt::format("{} x {} tokens", plan.batch(), plan.seq_len())
                           : fmt::format("{} examples", plan.batch());
}

// A plan that trains shows it where the head and the loss are one kernel, whose result is summed; one that
// only evaluates says it.
bool LossIsOfTokens(const proto::Plan& plan) {
  const bool counts_tokens =
      std::any_of(plan.inputs().begin(), plan.inputs().end(), [](const proto::Input& input) {
        return input.counted() &&
               (input.filling() == proto::Input::TARGETS || input.filling() == proto::Input::LABELS);
      });
  const auto evaluation = std::find_if(plan.programs().begin(), plan.programs().end(),
                                       [](const auto& program) { return program.name() == "eval_step"; });
  if (!counts_tokens || evaluation == plan.programs().end()) return false;
  const auto sum = std::find_if(evaluation->outputs().begin(), evaluation->outputs().end(),
                                [](const proto::Port& port) { return port.name() == "loss_sum"; });
  if (sum == evaluation->outputs().end()) return false;
  if (sum->counted()) return true;
  std::set<uint32_t> losses;
  for (const proto::Instruction& instruction : evaluation->instructions()) {
    if (instruction.kernel() == "linear_cross_entropy" && instruction.out_size() > 0)
      losses.insert(instruction.out(0).buffer_plus_one());
    if (instruction.kernel() == "loss_count" && instruction.in_size() > 0 && instruction.out_size() > 0 &&
        instruction.out(0).buffer_plus_one() == sum->operand().buffer_plus_one())
      return losses.contains(instruction.in(0).buffer_plus_one());
  }
  return false;
}

bool EvaluatesOnly(const proto::Plan& plan) {
  return std::none_of(plan.programs().begin(), plan.programs().end(),
                      [](const auto& program) { return program.name() == "train_step"; });
}

const proto::Input* CountedInput(const proto::Plan& plan) {
  const auto found = std::find_if(plan.inputs().begin(), plan.inputs().end(),
                                  [](const proto::Input& input) { return input.counted(); });
  return found == plan.inputs().end() ? nullptr : &*found;
}

bool CanFillUpRows(const proto::Plan& plan) {
  return CountedInput(plan) != nullptr && TakesTokens(plan) &&
         std::all_of(plan.programs().begin(), plan.programs().end(), [](const auto& program) {
           return program.name() != "eval_step" ||
                  std::all_of(program.outputs().begin(), program.outputs().end(),
                              [](const auto& port) { return port.counted() || port.name() == "loss_sum"; });
         });
}

}  // namespace ft
