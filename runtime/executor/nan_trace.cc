#include "runtime/executor/nan_trace.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/unit_parameters.h"
#include "runtime/plan/verify_transfers.h"

namespace ft {
namespace {

constexpr char kClipKernel[] = "clip_coefficient";
constexpr int kCoefficient = 1;  // among its results

uint64_t BytesOf(const Tensor& tensor) {
  return static_cast<uint64_t>(tensor.elements()) * SizeOf(tensor.dtype);
}

}  // namespace

NanTrace::NanTrace(const proto::Plan& plan, Executor& executor)
    : plan_(plan), executor_(executor), scan_(executor.device()) {}

absl::Status NanTrace::Replay(int program, int64_t micro_step) {
  micro_step_ = micro_step;
  births_.clear();
  next_birth_ = 0;
  decided_ = false;
  for (int b = 0; b < plan_.buffers_size(); ++b) {
    const proto::Buffer& buffer = plan_.buffers(b);
    if (!buffer.persistent() && buffer.program() == static_cast<uint32_t>(program))
      births_.push_back(static_cast<uint32_t>(b));
  }
  std::stable_sort(births_.begin(), births_.end(), [this](uint32_t a, uint32_t b) {
    return plan_.buffers(static_cast<int>(a)).first() < plan_.buffers(static_cast<int>(b)).first();
  });
  return executor_.RunWatched(program, *this);
}

// What lay where a buffer comes to life is none of its.
void NanTrace::Begin(int program, int instruction) {
  program_ = program;
  instruction_ = instruction;
  for (; next_birth_ < births_.size(); ++next_birth_) {
    const uint32_t buffer = births_[next_birth_];
    if (plan_.buffers(static_cast<int>(buffer)).first() > static_cast<uint32_t>(instruction)) return;
    Set(executor_.operands().Address(buffer), executor_.operands().Bytes(buffer), kNone);
  }
}

absl::Status NanTrace::Before(int program, int i) {
  if (decided_) return absl::OkStatus();
  Begin(program, i);
  const proto::Instruction& instruction = plan_.programs(program).instructions(i);
  taken_ = carried_ = kNone;
  by_operand_.clear();
  for (const proto::Operand& operand : instruction.in()) {
    by_operand_.push_back(kNone);
    if (operand.buffer_plus_one() == 0) continue;
    FT_RETURN_IF_ERROR(Take(operand, by_operand_.back()));
    const bool counts = HasFloats(static_cast<DType>(operand.dtype()));
    Merge(counts ? taken_ : carried_, by_operand_.back());
  }
  for (const proto::Operand& operand : instruction.out())
    Merge(carried_, At(executor_.operands().Resolve(operand)));
  return absl::OkStatus();
}

absl::Status NanTrace::After(int program, int i) {
  if (decided_) return absl::OkStatus();
  const proto::Instruction& instruction = plan_.programs(program).instructions(i);
  if (IsTransfer(instruction.opcode())) return AfterTransfer(instruction);
  // It writes zeros, between parameters that may not be there yet.
  if (instruction.kernel() == kPaddingKernel) return absl::OkStatus();
  FT_RETURN_IF_ERROR(AfterKernel(instruction));
  return instruction.kernel() == kClipKernel ? Discard(instruction) : absl::OkStatus();
}

absl::Status NanTrace::Discard(const proto::Instruction& clip) {
  decided_ = true;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor coefficient = executor_.operands().Resolve(clip.out(kCoefficient));
  return executor_.Write(coefficient.data, &nan, sizeof(nan));
}

absl::StatusOr<NotFinite> NanTrace::Look(const proto::Operand& operand, const Tensor& tensor) {
  const auto buffer = static_cast<int>(operand.buffer_plus_one()) - 1;
  return scan_.Look(tensor, plan_.buffers(buffer).space() == proto::HOST);
}

absl::Status NanTrace::Take(const proto::Operand& operand, Origins& origins) {
  const Tensor tensor = executor_.operands().Resolve(operand);
  const Origins known = At(tensor);
  if (!HasFloats(tensor.dtype)) {
    origins = known;
    return absl::OkStatus();
  }
  FT_ASSIGN_OR_RETURN(const NotFinite numbers, Look(operand, tensor));
  for (size_t kind = 0; kind < kKinds && numbers.any(); ++kind) {
    if (!Has(numbers, kind)) continue;
    origins[kind] = known[kind] >= 0 ? known[kind] : AnyOf(known);
    if (origins[kind] < 0) origins[kind] = State(operand, tensor, numbers);
  }
  return absl::OkStatus();
}

absl::Status NanTrace::AfterKernel(const proto::Instruction& instruction) {
  for (int o = 0; o < instruction.out_size(); ++o) {
    const proto::Operand& operand = instruction.out(o);
    if (operand.buffer_plus_one() == 0) continue;
    const Tensor tensor = executor_.operands().Resolve(operand);
    Origins origins = kNone;
    if (!HasFloats(tensor.dtype)) {
      Merge(origins, taken_);
      Merge(origins, carried_);
      Set(tensor.as<char>(), BytesOf(tensor), origins);
      continue;
    }
    FT_ASSIGN_OR_RETURN(const NotFinite numbers, Look(operand, tensor));
    int made = -1;
    for (size_t kind = 0; kind < kKinds && numbers.any(); ++kind) {
      if (!Has(numbers, kind)) continue;
      origins[kind] = OriginOf(kind);
      const bool enters =
          origins[kind] >= 0 && origins_[static_cast<size_t>(origins[kind])].kind == NanOrigin::Kind::kState;
      if (origins[kind] >= 0 && !enters) continue;
      if (made < 0)
        made = Made(o, numbers, tensor.elements(), NanOrigin::Kind::kMade,
                    enters                   ? origins[kind]
                    : taken_[kPositive] >= 0 ? taken_[kPositive]
                                             : taken_[kNegative]);
      origins[kind] = made;
    }
    Set(tensor.as<char>(), BytesOf(tensor), origins);
  }
  return absl::OkStatus();
}

absl::Status NanTrace::AfterTransfer(const proto::Instruction& instruction) {
  const bool in_place = instruction.opcode() == proto::ALL_REDUCE;
  const auto& outs = in_place ? instruction.in() : instruction.out();
  for (int o = 0; o < outs.size(); ++o) {
    const Tensor tensor = executor_.operands().Resolve(outs[o]);
    const Origins& own = by_operand_[static_cast<size_t>(o)];
    Origins origins = own;  // of integers
    if (HasFloats(tensor.dtype)) {
      FT_ASSIGN_OR_RETURN(const NotFinite numbers, Look(outs[o], tensor));
      for (size_t kind = 0; kind < kKinds; ++kind) {
        origins[kind] = !Has(numbers, kind) ? -1 : own[kind] >= 0 ? own[kind] : AnyOf(own);
        if (!Has(numbers, kind) || origins[kind] >= 0) continue;
        origins[kind] = instruction.opcode() == proto::ALL_GATHER || instruction.opcode() == proto::COPY
                            ? State(outs[o], tensor, numbers)
                            : Made(o, numbers, tensor.elements(), NanOrigin::Kind::kReceived, -1);
      }
    }
    Set(tensor.as<char>(), BytesOf(tensor), origins);
  }
  return absl::OkStatus();
}

// Of numbers of a kind in a result; -1: they were made here.
int NanTrace::OriginOf(size_t kind) const {
  if (taken_[kind] >= 0) return taken_[kind];
  if (kind != kNan && AnyOf(taken_) >= 0) return AnyOf(taken_);
  // NaN of infinities is made here.
  return AnyOf(taken_) >= 0 ? -1 : AnyOf(carried_);
}

int NanTrace::Made(int output, const NotFinite& numbers, int64_t elements, NanOrigin::Kind kind, int cause) {
  origins_.push_back({.kind = kind,
                      .micro_step = micro_step_,
                      .program = program_,
                      .instruction = instruction_,
                      .output = output,
                      .numbers = numbers,
                      .elements = elements,
                      .cause = cause});
  return static_cast<int>(origins_.size()) - 1;
}

int NanTrace::State(const proto::Operand& operand, const Tensor& tensor, const NotFinite& numbers) {
  std::string text = StateText(operand, tensor, numbers.first);
  for (size_t i = 0; i < origins_.size(); ++i)
    if (origins_[i].state == text) return static_cast<int>(i);
  origins_.push_back({.kind = NanOrigin::Kind::kState, .micro_step = micro_step_, .state = std::move(text)});
  return static_cast<int>(origins_.size()) - 1;
}

std::string NanTrace::StateText(const proto::Operand& operand, const Tensor& tensor, int64_t first) const {
  const uint32_t b = operand.buffer_plus_one() - 1;
  const proto::Buffer& buffer = plan_.buffers(static_cast<int>(b));
  for (const proto::Port& port : plan_.programs(program_).inputs())
    if (port.operand().buffer_plus_one() == operand.buffer_plus_one())
      return absl::StrCat("input '", port.name(), "'");
  if (buffer.size().kind() != proto::SizeExpr::CONSTANT) {
    const OperandResolver& operands = executor_.operands();
    const uint32_t unit = buffer.size().unit();
    uint64_t element = static_cast<uint64_t>(tensor.as<char>() - operands.Address(b)) / SizeOf(tensor.dtype) +
                       static_cast<uint64_t>(first);
    if (buffer.size().kind() == proto::SizeExpr::UNIT_SLICE) element += operands.SliceBegin(unit);
    for (const proto::Parameter& parameter : plan_.parameters()) {
      if (parameter.unit() != unit || element < parameter.offset() ||
          element >= parameter.offset() + ElementsOf(parameter))
        continue;
      const bool holds_weights = buffer.class_() == proto::PARAMETERS || buffer.class_() == proto::GATHERED;
      return absl::StrCat(holds_weights ? "" : absl::StrCat("'", buffer.name(), "' of "), "parameter '",
                          parameter.name(), "'");
    }
  }
  return absl::StrCat("'", buffer.name(), "'");
}

int NanTrace::Reached() const {
  int reached = -1;
  for (const proto::Port& port : plan_.programs(program_).outputs()) {
    if (port.name() != "loss" && port.name() != "grad_norm") continue;
    const int origin = AnyOf(At(executor_.operands().Resolve(port.operand())));
    if (origin >= 0 && (reached < 0 || origin < reached)) reached = origin;
  }
  return reached;
}

bool NanTrace::Has(const NotFinite& numbers, size_t kind) {
  return (kind == kNan ? numbers.nan : kind == kPositive ? numbers.positive : numbers.negative) > 0;
}

// What was found first counts.
void NanTrace::Merge(Origins& all, const Origins& more) {
  for (size_t kind = 0; kind < kKinds; ++kind)
    if (more[kind] >= 0 && (all[kind] < 0 || more[kind] < all[kind])) all[kind] = more[kind];
}

int NanTrace::AnyOf(const Origins& origins) {
  for (const int origin : origins)
    if (origin >= 0) return origin;
  return -1;
}

NanTrace::Origins NanTrace::At(const Tensor& tensor) const {
  Origins origins = kNone;
  if (!tensor.present()) return origins;
  const char *const begin = tensor.as<char>(), *const end = begin + BytesOf(tensor);
  for (const Mark& mark : marks_)
    if (mark.begin < end && begin < mark.end) Merge(origins, mark.origins);
  return origins;
}

void NanTrace::Set(const char* begin, uint64_t bytes, const Origins& origins) {
  const char* const end = begin + bytes;
  for (size_t i = 0, n = marks_.size(); i < n; ++i) {
    const Mark mark = marks_[i];
    if (mark.end <= begin || end <= mark.begin) continue;
    marks_[i].end = std::max(mark.begin, std::min(mark.end, begin));  // what lies before
    if (end < mark.end) marks_.push_back({end, mark.end, mark.origins});
  }
  std::erase_if(marks_, [](const Mark& mark) { return mark.begin == mark.end; });
  if (origins != kNone) marks_.push_back({begin, end, origins});
}

}  // namespace ft
