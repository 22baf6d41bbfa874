#include "runtime/plan/inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace ft {
namespace {

constexpr std::pair<std::string_view, proto::Input::Filling> kFillings[] = {
    {"tokens", proto::Input::TOKENS},
    {"targets", proto::Input::TARGETS},
    {"positions", proto::Input::POSITIONS},
    {"segments", proto::Input::SEGMENTS},
};

constexpr std::string_view kReserved[] = {"lr",   "step",      "rng",       "scaler",
                                          "loss", "grad_norm", "found_inf", "counted", "loss_sum"};

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Behind the batch.
int FirstOfExample(const proto::Input& input) { return IsConstant(input) ? 0 : 1; }

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

uint64_t ExampleBytes(const proto::Input& input) {
  uint64_t bytes = SizeOf(static_cast<DType>(input.dtype()));
  for (int i = FirstOfExample(input); i < input.shape_size(); ++i) bytes *= input.shape(i);
  return bytes;
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

std::string_view ExampleWord(const proto::Plan& plan) { return TakesTokens(plan) ? "sequences" : "examples"; }

std::string BatchText(const proto::Plan& plan) {
  return TakesTokens(plan) ? fmt::format("{} x {} tokens", plan.batch(), plan.seq_len())
                           : fmt::format("{} examples", plan.batch());
}

const proto::Input* CountedInput(const proto::Plan& plan) {
  const auto found = std::find_if(plan.inputs().begin(), plan.inputs().end(),
                                  [](const proto::Input& input) { return input.counted(); });
  return found == plan.inputs().end() ? nullptr : &*found;
}

bool CanFillUpRows(const proto::Plan& plan) {
  return CountedInput(plan) != nullptr && TakesTokens(plan) &&
         std::all_of(plan.programs().begin(), plan.programs().end(), [](const auto& program) {
           return program.name() != "eval_step" || program.outputs_size() <= 1;
         });
}

}  // namespace ft
