#include "runtime/executor/continue_text.h"

#include <algorithm>
#include <cstring>

#include "fmt/format.h"
#include "runtime/base/convert_elements.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/inputs.h"

namespace ft {
namespace {

// Of a text that is continued.
bool IsKnown(const proto::Input& input) {
  switch (input.filling()) {
    case proto::Input::TOKENS:
    case proto::Input::POSITIONS:
    case proto::Input::SEGMENTS:
    case proto::Input::LENGTHS:
    case proto::Input::ATTENTION_MASK:
    case proto::Input::TOKEN_TYPES:
    case proto::Input::VALUE:
      return true;
    default:
      return false;
  }
}

void Put(DType dtype, void* data, uint64_t i, int64_t value) {
  switch (dtype) {
    case DType::kI64:
      static_cast<int64_t*>(data)[i] = value;
      return;
    case DType::kU8:
      static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(value);
      return;
    default:
      static_cast<int32_t*>(data)[i] = static_cast<int32_t>(value);
  }
}

absl::Status Missing(const char* port) {
  return absl::FailedPreconditionError(fmt::format("the plan's sample_step has no port '{}'", port));
}

}  // namespace

absl::StatusOr<TextContinuer> TextContinuer::Create(const proto::Plan& plan, Executor& executor) {
  TextContinuer continuer(plan, executor);
  const absl::StatusOr<int> program = executor.FindProgram("sample_step");
  if (!program.ok())
    return absl::FailedPreconditionError(
        "the plan cannot continue a text; compile it with --sample: ftc compile --sample ...");
  continuer.program_ = *program;
  FT_RETURN_IF_ERROR(continuer.FindPorts());
  return continuer;
}

absl::Status TextContinuer::FindPorts() {
  for (const proto::Input& input : plan_->inputs()) {
    const Tensor tensor = executor_->Input(program_, input.name());
    if (input.filling() == proto::Input::TOKENS) vocabulary_ = static_cast<int64_t>(input.ids_below());
    if (!tensor.present()) continue;
    if (!IsKnown(input))
      return absl::FailedPreconditionError(
          fmt::format("nothing says what input {} of the plan's sample_step is", Quote(input.name())));
    ports_.push_back({&input, tensor.data});
  }
  const Tensor position = executor_->Input(program_, "sample_position");
  if (!position.present()) return Missing("sample_position");
  position_ = position.as<int32_t>();
  logits_ = executor_->Output(program_, "sample_logits");
  if (!logits_.present() || !IsConvertible(logits_.dtype)) return Missing("sample_logits");
  vocabulary_ = vocabulary_ == 0 ? logits_.last() : std::min(vocabulary_, logits_.last());
  row_.resize(static_cast<size_t>(vocabulary_));
  return absl::OkStatus();
}

// The same in all rows.
void TextContinuer::Fill(const Port& port, absl::Span<const int32_t> window) const {
  const proto::Input& input = *port.input;
  if (IsConstant(input)) {
    std::memcpy(port.data, input.value().data(), input.value().size());
    return;
  }
  const auto value = [&](uint64_t i) -> int64_t {
    switch (input.filling()) {
      case proto::Input::TOKENS:
        return i < window.size() ? window[i] : 0;
      case proto::Input::POSITIONS:
        return static_cast<int64_t>(i);
      case proto::Input::LENGTHS:
        return static_cast<int64_t>(window.size());
      case proto::Input::ATTENTION_MASK:
        return i < window.size() ? 1 : 0;
      default:  // all of one document, and of one text
        return 0;
    }
  };
  const uint64_t of_row = input.shape_size() == 1 ? 1 : plan_->seq_len();
  for (uint64_t i = 0; i < plan_->batch() * of_row; ++i)
    Put(static_cast<DType>(input.dtype()), port.data, i, value(i % of_row));
}

void TextContinuer::ReadLogits() {
  ConvertElements(logits_.dtype, static_cast<const std::byte*>(logits_.data), DType::kF32,
                  static_cast<std::byte*>(static_cast<void*>(row_.data())), row_.size());
}

absl::StatusOr<std::vector<int32_t>> TextContinuer::Continue(absl::Span<const int32_t> prompt, int64_t count,
                                                             const TokenChoice& choice,
                                                             std::optional<int32_t> end, uint32_t text) {
  std::vector<int32_t> tokens(prompt.begin(), prompt.end());
  const auto length = static_cast<size_t>(plan_->seq_len());
  bool ended = false;
  absl::Status status;
  const bool is_alone = executor_->mesh().world_size() == 1;
  for (int64_t i = 0; i < count && !(ended && is_alone); ++i) {
    const size_t known = std::min(tokens.size(), length);
    const absl::Span<const int32_t> window = absl::MakeConstSpan(tokens).last(known);
    for (const Port& port : ports_) Fill(port, window);
    *position_ = static_cast<int32_t>(known - 1);
    FT_RETURN_IF_ERROR(executor_->Run(program_));
    if (ended) continue;
    ReadLogits();
    const absl::StatusOr<int32_t> next = ChooseToken(row_, choice, text, static_cast<int64_t>(tokens.size()));
    if (next.ok()) tokens.push_back(*next);
    status = next.status();
    ended = !status.ok() || *next == end;
  }
  FT_RETURN_IF_ERROR(status);
  return std::vector<int32_t>(tokens.begin() + static_cast<std::ptrdiff_t>(prompt.size()), tokens.end());
}

}  // namespace ft
