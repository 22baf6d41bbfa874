#include "runtime/executor/nan_trace.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/kernels/gradient_norm/operands.h"
#include "runtime/plan/plan_clusters.h"
#include "runtime/plan/size_expr.h"
#include "runtime/plan/unit_parameters.h"
#include "runtime/plan/verify_transfers.h"

namespace ft {
namespace {

bool Has(const NotFinite& numbers, size_t kind) {
  return (kind == NanMarks::kNan        ? numbers.nan
          : kind == NanMarks::kPositive ? numbers.positive
                                        : numbers.negative) > 0;
}

}  // namespace

NanTrace::NanTrace(const proto::Plan& plan, Executor& executor)
    : plan_(plan), executor_(executor), scan_(executor.device()) {}

absl::Status NanTrace::Replay(int program, int64_t micro_step) {
  FT_RETURN_IF_ERROR(CheckDiscards(plan_.programs(program)));
  for (const proto::Port& port : plan_.programs(program).inputs()) {  // the host has written them
    const Tensor tensor = executor_.operands().Resolve(port.operand());
    marks_.Forget(tensor.data, tensor.bytes());
  }
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

absl::Status NanTrace::CheckDiscards(const proto::Program& program) const {
  const auto has = [&](const char* kernel, int outputs) {
    return std::any_of(program.instructions().begin(), program.instructions().end(),
                       [&](const proto::Instruction& instruction) {
                         return instruction.kernel() == kernel && instruction.out_size() >= outputs;
                       });
  };
  if (!has(kUpdateKernel, 0) || has(kClipCoefficientKernel, kClipCoefficientResults)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the plan's ", program.name(), " updates parameters and has no ",
                                          kClipCoefficientKernel,
                                          ": it cannot be replayed without being applied"));
}

// What lay where a buffer comes to life is none of its.
void NanTrace::Begin(int program, int instruction) {
  program_ = program;
  instruction_ = instruction;
  for (; next_birth_ < births_.size(); ++next_birth_) {
    const uint32_t buffer = births_[next_birth_];
    if (plan_.buffers(static_cast<int>(buffer)).first() > static_cast<uint32_t>(instruction)) return;
    marks_.Forget(executor_.operands().Address(buffer), executor_.operands().Bytes(buffer));
  }
}

absl::Status NanTrace::Before(int program, int i) {
  if (decided_) return absl::OkStatus();
  Begin(program, i);
  const proto::Instruction& instruction = plan_.programs(program).instructions(i);
  taken_ = carried_ = NanMarks::kNone;
  by_operand_.clear();
  for (const proto::Operand& operand : instruction.in()) {
    by_operand_.push_back(NanMarks::kNone);
    if (operand.buffer_plus_one() == 0) continue;
    FT_ASSIGN_OR_RETURN(by_operand_.back(), Take(operand));
    const bool counts = HasFloats(static_cast<DType>(operand.dtype()));
    NanMarks::Merge(counts ? taken_ : carried_, by_operand_.back());
  }
  for (const proto::Operand& operand : instruction.out())
    if (operand.buffer_plus_one() != 0)
      NanMarks::Merge(carried_, At(executor_.operands().Resolve(operand)).origins);
  return absl::OkStatus();
}

absl::Status NanTrace::After(int program, int i) {
  if (decided_) return absl::OkStatus();
  const proto::Instruction& instruction = plan_.programs(program).instructions(i);
  if (IsTransfer(instruction.opcode())) return AfterTransfer(instruction);
  // It writes zeros, between parameters that may not be there yet.
  if (instruction.kernel() == kPaddingKernel) return absl::OkStatus();
  FT_RETURN_IF_ERROR(AfterKernel(instruction));
  return instruction.kernel() == kClipCoefficientKernel ? Discard(instruction) : absl::OkStatus();
}

absl::Status NanTrace::Discard(const proto::Instruction& clip) {
  decided_ = true;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor coefficient = executor_.operands().Resolve(clip.out(kClipCoefficientResult));
  return executor_.Write(coefficient.data, &nan, sizeof(nan));
}

absl::StatusOr<NotFinite> NanTrace::Look(const proto::Operand& operand, const Tensor& tensor) {
  const auto buffer = static_cast<int>(operand.buffer_plus_one()) - 1;
  return scan_.Look(tensor, plan_.buffers(buffer).space() == proto::HOST);
}

// Only what this replay has not seen is looked at.
absl::StatusOr<NanTrace::Origins> NanTrace::Take(const proto::Operand& operand) {
  const Tensor tensor = executor_.operands().Resolve(operand);
  const NanMarks::Known known = At(tensor);
  if (known.exact || !HasFloats(tensor.dtype)) return known.origins;
  FT_ASSIGN_OR_RETURN(const NotFinite numbers, Look(operand, tensor));
  Origins origins = NanMarks::kNone;
  for (size_t kind = 0; kind < NanMarks::kKinds && numbers.any(); ++kind) {
    if (!Has(numbers, kind)) continue;
    origins[kind] = known.origins[kind] >= 0 ? known.origins[kind] : NanMarks::AnyOf(known.origins);
    if (origins[kind] < 0) origins[kind] = State(operand, tensor, numbers);
  }
  // Where parts of it are marked they say more.
  if (!numbers.any() || known.origins == NanMarks::kNone) Set(tensor, origins);
  return origins;
}

absl::Status NanTrace::AfterKernel(const proto::Instruction& instruction) {
  // What other ranks brought to a norm is not seen here.
  const bool is_norm_of_all =
      instruction.kernel() == kClipCoefficientKernel && executor_.mesh().world_size() > 1;
  for (int o = 0; o < instruction.out_size(); ++o) {
    const proto::Operand& operand = instruction.out(o);
    if (operand.buffer_plus_one() == 0) continue;
    const Tensor tensor = executor_.operands().Resolve(operand);
    Origins origins = NanMarks::kNone;
    if (!HasFloats(tensor.dtype)) {
      if (instruction.kernel() == kSumSquaresKernel) {
        NanMarks::Merge(origins, taken_);
        NanMarks::Merge(origins, carried_);
      }
      Set(tensor, origins);
      continue;
    }
    FT_ASSIGN_OR_RETURN(const NotFinite numbers, Look(operand, tensor));
    int made = -1;
    for (size_t kind = 0; kind < NanMarks::kKinds && numbers.any(); ++kind) {
      if (!Has(numbers, kind)) continue;
      origins[kind] = OriginOf(kind);
      const bool enters =
          origins[kind] >= 0 && origins_[static_cast<size_t>(origins[kind])].kind == NanOrigin::Kind::kState;
      if (origins[kind] >= 0 && !enters) continue;
      const int cause = enters ? origins[kind] : CauseOf();
      if (made < 0)
        made = Made(o, numbers, tensor.elements(),
                    is_norm_of_all && cause < 0 ? NanOrigin::Kind::kReceived : NanOrigin::Kind::kMade, cause);
      origins[kind] = made;
    }
    Set(tensor, origins);
  }
  return absl::OkStatus();
}

absl::Status NanTrace::AfterTransfer(const proto::Instruction& instruction) {
  // Matrices go to those who compute on them once the coefficient is known, behind which nothing is looked
  // at.
  if (instruction.opcode() == proto::ALL_TO_ALL)
    return absl::InternalError(
        "an all_to_all stands before the step is decided: what it brings is not traced");
  const bool in_place = instruction.opcode() == proto::ALL_REDUCE;
  const auto& outs = in_place ? instruction.in() : instruction.out();
  for (int o = 0; o < outs.size(); ++o) {
    const Tensor tensor = executor_.operands().Resolve(outs[o]);
    const Origins& own = by_operand_[static_cast<size_t>(o)];
    if (!HasFloats(tensor.dtype) || instruction.opcode() == proto::COPY) {
      Set(tensor, own);
      continue;
    }
    const int earliest = NanMarks::EarliestOf(own);
    if (instruction.opcode() != proto::ALL_GATHER && earliest >= 0 && (summed_ < 0 || earliest < summed_))
      summed_ = earliest;
    FT_ASSIGN_OR_RETURN(const Origins origins, Arrived(instruction, o));
    Set(tensor, origins);
  }
  return absl::OkStatus();
}

// What the `output`-th floats that a collective has brought are made of.
absl::StatusOr<NanTrace::Origins> NanTrace::Arrived(const proto::Instruction& instruction, int output) {
  const proto::Operand& operand =
      instruction.opcode() == proto::ALL_REDUCE ? instruction.in(output) : instruction.out(output);
  const Tensor tensor = executor_.operands().Resolve(operand);
  const Origins& own = by_operand_[static_cast<size_t>(output)];
  Origins origins = NanMarks::kNone;
  FT_ASSIGN_OR_RETURN(const NotFinite numbers, Look(operand, tensor));
  for (size_t kind = 0; kind < NanMarks::kKinds; ++kind) {
    if (!Has(numbers, kind)) continue;
    origins[kind] = own[kind] >= 0 ? own[kind] : NanMarks::AnyOf(own);
    if (origins[kind] >= 0) continue;
    origins[kind] = instruction.opcode() == proto::ALL_GATHER
                        ? State(operand, tensor, numbers)
                        : Made(output, numbers, tensor.elements(), NanOrigin::Kind::kReceived, -1);
  }
  return origins;
}

// Of numbers of a kind in a result; -1: they were made here.
int NanTrace::OriginOf(size_t kind) const {
  Origins origins = taken_;
  NanMarks::Merge(origins, carried_);
  if (origins[kind] >= 0) return origins[kind];
  if (taken_[NanMarks::kNan] >= 0) return taken_[NanMarks::kNan];
  // NaN of infinities, and infinity beside the other one, are made here.
  return NanMarks::AnyOf(taken_) >= 0 ? -1 : NanMarks::AnyOf(carried_);
}

// The infinity that what is made here may come of; -1: there was none.
int NanTrace::CauseOf() const {
  for (const Origins* origins : {&carried_, &taken_})
    for (const NanMarks::Kind kind : {NanMarks::kPositive, NanMarks::kNegative})
      if ((*origins)[kind] >= 0) return (*origins)[kind];
  return -1;
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
  if (IsOfUnit(buffer.size())) {
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
  int reached = summed_;
  for (const proto::Port& port : plan_.programs(program_).outputs()) {
    if (port.name() != "loss" && port.name() != "grad_norm") continue;
    const int origin = NanMarks::EarliestOf(At(executor_.operands().Resolve(port.operand())).origins);
    if (origin >= 0 && (reached < 0 || origin < reached)) reached = origin;
  }
  return reached;
}

bool NanTrace::EndsFinite() const {
  NotFinite numbers;
  for (const char* name : {"loss", "grad_norm"}) {
    const Tensor tensor = executor_.Output(program_, name);
    if (tensor.present()) CountNotFinite(tensor.data, tensor.dtype, 0, tensor.elements(), numbers);
  }
  return !numbers.any();
}

}  // namespace ft
