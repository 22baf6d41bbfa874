#include "runtime/base/cluster.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/types/span.h"
#include "fmt/format.h"
#include "runtime/base/checked.h"
#include "runtime/base/elementwise_types.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

using Op = ClusterBody::Op;
using ClusterPlace = ClusterBody::Place;

template <typename... Args>
absl::Status Invalid(fmt::format_string<Args...> format, Args&&... args) {
  return absl::InvalidArgumentError(fmt::format(format, std::forward<Args>(args)...));
}

absl::Status CheckSpace(const ClusterBody& body) {
  const bool sized = body.rows > 0 && body.columns > 0 && body.last_columns > 0 &&
                     body.last_columns <= body.columns &&
                     CheckedMul(body.rows, body.columns) <= kMaxUnitElements;
  if (!sized)
    return Invalid("a space of {} rows and {} columns, {} in the last, is none", body.rows, body.columns,
                   body.last_columns);
  if (body.values() > kMaxClusterValues || body.inputs.size() > kMaxClusterInputs ||
      body.reads.size() > kMaxClusterReads || body.results.empty() ||
      body.results.size() > kMaxClusterResults || body.outputs.size() > kMaxClusterOutputs)
    return Invalid(
        "{} values, {} of them read from {} inputs, {} outputs to {} results: there may be {}, {}, {}, "
        "{} and 1 to {}",
        body.values(), body.reads.size(), body.inputs.size(), body.outputs.size(), body.results.size(),
        kMaxClusterValues, kMaxClusterReads, kMaxClusterInputs, kMaxClusterOutputs, kMaxClusterResults);
  const auto draws = std::count_if(body.ops.begin(), body.ops.end(), [](const Op& op) {
    return op.kind == Op::Kind::kRandomBits || op.kind == Op::Kind::kIota;
  });
  if (static_cast<size_t>(draws) > kMaxClusterDraws)
    return Invalid("{} of its values are random bits or iotas: there may be {}", draws, kMaxClusterDraws);
  if (body.last_columns != body.columns && !body.IsFlat())
    return Invalid("its last row is shorter, but rows have a meaning");
  return absl::OkStatus();
}

absl::Status CheckBuffer(const ClusterBody::Buffer& buffer) {
  if (buffer.state)
    return buffer.dtype == DType::kI64 && buffer.elements == kRandomStateNumbers
               ? absl::OkStatus()
               : Invalid("the state of a generator is three i64");
  if (!IsElementwiseType(buffer.dtype)) return Invalid("it has elements of type {}", Name(buffer.dtype));
  return buffer.elements > 0 && buffer.elements <= kMaxUnitElements
             ? absl::OkStatus()
             : Invalid("it has {} elements", buffer.elements);
}

// Every place of the space has an element within the tensor.
absl::Status CheckPlace(const ClusterBody& body, const ClusterPlace& place, int64_t elements) {
  if (place.begin < 0 || place.column_stride < 0 || place.steps.size() > kMaxClusterSteps)
    return Invalid("its place is none");
  int64_t last = CheckedAdd(place.begin, CheckedMul(body.columns - 1, place.column_stride));
  for (const ClusterPlace::Step& step : place.steps) {
    if (step.every <= 0 || step.extent <= 0 || step.stride <= 0) return Invalid("its place is none");
    const int64_t most = std::min(step.extent - 1, (body.rows - 1) / step.every);
    last = CheckedAdd(last, CheckedMul(most, step.stride));
  }
  ClusterPlace whole = body.Whole();
  whole.begin = place.begin;
  if (place == whole) last = CheckedAdd(place.begin, body.elements() - 1);  // the last row may be shorter
  return last < elements ? absl::OkStatus() : Invalid("it reaches element {} of {}", last, elements);
}

// A space is no larger than what is in memory: its rows are those of something, its columns too.
absl::Status CheckExtents(const ClusterBody& body) {
  bool has_rows = body.rows == 1, has_columns = body.columns == 1;
  for (const ClusterBody::Read& read : body.reads) {
    int64_t rows = 1;
    for (const ClusterPlace::Step& step : read.place.steps) rows = CheckedMul(rows, step.extent);
    has_rows |= rows >= body.rows;
    has_columns |= read.place.column_stride != 0;
  }
  for (const ClusterBody::Output& output : body.outputs) {
    has_rows |= !output.over_rows;
    has_columns |= output.place.column_stride != 0;
  }
  return has_rows && has_columns ? absl::OkStatus()
                                 : Invalid("no input or output has its rows, or none has its columns");
}

absl::Status CheckRead(const ClusterBody& body, const ClusterBody::Read& read) {
  if (read.input >= body.inputs.size() || body.inputs[read.input].state)
    return Invalid("its input {} is none", read.input);
  return CheckPlace(body, read.place, body.inputs[read.input].elements);
}

absl::Status CheckElementwiseOp(const ClusterBody& body, const Op& op) {
  if (static_cast<size_t>(op.function) >= std::size(kElementwiseRows)) return Invalid("it is unknown");
  const ElementwiseRow& row = RowOf(op.function);
  if (op.operands.size() != static_cast<size_t>(row.operands) ||
      op.parameters.size() != static_cast<size_t>(row.num_parameters()))
    return Invalid("{} takes {} operands and {} parameters, not {} and {}", row.name, row.operands,
                   row.num_parameters(), op.operands.size(), op.parameters.size());
  std::array<DType, kMaxElementwiseOperands> types = {};
  for (int i = 0; i < row.operands; ++i) types[i] = body.dtype(op.operands[i]);
  FT_RETURN_IF_ERROR(CheckElementwiseTypes(row, absl::MakeSpan(types).first(row.operands), op.dtype));
  for (int i = 0; i < row.num_parameters(); ++i) {
    const absl::StatusOr<double> number =
        CheckElementwiseParameter(row, i, op.parameters[i], types[row.operands - 1]);
    if (!number.ok()) return number.status();
    if (*number != op.parameters[i])
      return Invalid("attribute '{}' is rounded to f32, {} is not", row.parameters[i], op.parameters[i]);
  }
  return absl::OkStatus();
}

absl::Status CheckRandomBits(const ClusterBody& body, const Op& op) {
  if (op.operands.size() != 1 || op.operands[0] >= body.inputs.size() || !body.inputs[op.operands[0]].state ||
      !op.parameters.empty() || op.dtype != DType::kI32)
    return Invalid("it takes the state of a generator and gives i32");
  if (op.draw >= kMaxClusterDraws) return Invalid("it is draw {}", op.draw);
  return op.elements > 0 && op.elements <= kMaxUnitElements ? CheckPlace(body, op.place, op.elements)
                                                            : Invalid("it has {} elements", op.elements);
}

absl::Status CheckIota(const ClusterBody& body, const Op& op) {
  if (!op.operands.empty() || !op.parameters.empty() || op.dtype != DType::kI32)
    return Invalid("it takes nothing and gives i32");
  return op.elements > 0 && op.elements <= std::numeric_limits<int32_t>::max()
             ? CheckPlace(body, op.place, op.elements)
             : Invalid("it has {} elements", op.elements);
}

absl::Status CheckOp(const ClusterBody& body, const Op& op, const std::vector<bool>& columns) {
  if (!IsElementwiseType(op.dtype)) return Invalid("it has elements of type {}", Name(op.dtype));
  switch (op.kind) {
    case Op::Kind::kElementwise:
      return CheckElementwiseOp(body, op);
    case Op::Kind::kFill:
      if (op.operands.empty() && op.parameters.size() == 1 && IsFloat(op.dtype) &&
          std::abs(op.parameters[0]) <= std::numeric_limits<float>::max())
        return absl::OkStatus();
      return Invalid("it is no finite number alone");
    case Op::Kind::kConvert:
      return op.operands.size() == 1 && op.parameters.empty() ? absl::OkStatus()
                                                              : Invalid("it takes one operand");
    case Op::Kind::kRandomBits:
      return CheckRandomBits(body, op);
    case Op::Kind::kIota:
      return CheckIota(body, op);
    case Op::Kind::kReduce:
      if (op.operands.size() != 1 || !op.parameters.empty() || op.reduction > ReductionKind::kMin)
        return Invalid("it is no reduction of one operand");
      if (!columns[op.operands[0]]) return Invalid("what it reduces has no columns");
      return op.dtype == body.dtype(op.operands[0]) && op.dtype != DType::kU8
                 ? absl::OkStatus()
                 : Invalid("it cannot be of type {}", Name(op.dtype));
  }
  return Invalid("it is unknown");
}

// What a sum over rows is added to is as the result, of which it may take the place.
absl::Status CheckAcc(const ClusterBody& body, const ClusterBody::Output& output) {
  if (output.acc < 0) return absl::OkStatus();
  const bool is_like_result = static_cast<uint64_t>(output.acc) < body.inputs.size() &&
                              body.inputs[output.acc] == body.results[output.result];
  return output.over_rows && output.reduction == ReductionKind::kSum && is_like_result &&
                 IsFloat(body.results[output.result].dtype)
             ? absl::OkStatus()
             : Invalid("it cannot be added to input {}", output.acc);
}

absl::Status CheckOutput(const ClusterBody& body, const ClusterBody::Output& output,
                         const std::vector<bool>& columns) {
  if (output.value >= body.values()) return Invalid("its value {} is none", output.value);
  if (output.result >= body.results.size()) return Invalid("its result {} is none", output.result);
  const DType dtype = body.dtype(output.value), to = body.results[output.result].dtype;
  FT_RETURN_IF_ERROR(CheckPlace(body, output.place, body.results[output.result].elements));
  FT_RETURN_IF_ERROR(CheckAcc(body, output));
  if (!output.over_rows) {
    if (to != dtype) return Invalid("it has type {}, its value {}", Name(to), Name(dtype));
    return columns[output.value] && output.place.column_stride == 0 ? Invalid("its value has columns")
                                                                    : absl::OkStatus();
  }
  const bool same_kind = to == dtype || (IsFloat(to) && IsFloat(dtype));
  if (!same_kind || dtype == DType::kU8 || output.reduction > ReductionKind::kMin ||
      output.place != ClusterPlace{.begin = output.place.begin, .column_stride = 1})
    return Invalid("it is no reduction over rows to type {}", Name(to));
  return body.last_columns == body.columns ? absl::OkStatus() : Invalid("its last row is shorter");
}

// What is not written would be what was there before.
absl::Status CheckResult(const ClusterBody& body, uint32_t result) {
  int64_t written = 0;
  for (const ClusterBody::Output& output : body.outputs) {
    if (output.result != result) continue;
    written += output.over_rows                  ? body.columns
               : output.place.column_stride == 0 ? body.rows
                                                 : body.elements();
  }
  const int64_t elements = body.results[result].elements;
  return written == elements ? absl::OkStatus()
                             : Invalid("outputs write {} elements of {}", written, elements);
}

absl::Status At(std::string_view what, size_t index, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::InvalidArgumentError(fmt::format("{} {}: {}", what, index, std::string(status.message())));
}

}  // namespace

int64_t ClusterBody::Place::RowBegin(int64_t row) const {
  int64_t element = begin;
  for (const Step& step : steps) element += row / step.every % step.extent * step.stride;
  return element;
}

bool ClusterBody::IsFlat() const {
  if (columns != kClusterLanes) return false;
  const auto is_flat = [&](const ClusterPlace& place) {
    ClusterPlace whole = Whole();
    whole.begin = place.begin;
    return place == whole || (place.steps.empty() && place.column_stride == 0);
  };
  return std::all_of(reads.begin(), reads.end(), [&](const Read& read) { return is_flat(read.place); }) &&
         std::all_of(ops.begin(), ops.end(),
                     [&](const Op& op) { return op.kind != Op::Kind::kReduce && is_flat(op.place); }) &&
         std::all_of(outputs.begin(), outputs.end(),
                     [&](const Output& output) { return !output.over_rows && output.place == Whole(); });
}

uint32_t ClusterBody::Draws() const {
  uint32_t draws = 0;
  for (const Op& op : ops)
    if (op.kind == Op::Kind::kRandomBits) draws = std::max(draws, op.draw + 1);
  return draws;
}

int64_t ClusterBody::BlockRows() const {
  constexpr int64_t kBlocks = 64, kFewest = 16;
  return std::max(kFewest, CeilDiv(rows, kBlocks));
}

bool ClusterBody::HasPartials() const {
  return std::any_of(outputs.begin(), outputs.end(), [](const Output& output) { return output.over_rows; });
}

int64_t ClusterBody::PartialWordBytes() const {
  const bool is_long = std::any_of(outputs.begin(), outputs.end(), [&](const Output& output) {
    return output.over_rows && dtype(output.value) == DType::kI64;
  });
  return is_long ? 8 : 4;
}

int64_t ClusterBody::PartialBytesEach() const { return CheckedMul(Blocks(), columns, PartialWordBytes()); }

std::vector<int64_t> ClusterBody::PartialOffsets(int64_t each) const {
  constexpr int64_t kAlignment = 64;
  int64_t aligned = CheckedMul(CeilDiv(each, kAlignment), kAlignment);
  // Rows of several outputs are added to side by side. With a multiple of a page between them their columns
  // would share sets of a cache of 8 ways with those of inputs and results, and drive each other out.
  constexpr int64_t kPage = 4096, kApart = 17 * kAlignment;
  if (aligned >= kPage) aligned = CheckedAdd(aligned, (kApart + kPage - aligned % kPage) % kPage);
  std::vector<int64_t> offsets = {0};
  for (const Output& output : outputs)
    if (output.over_rows) offsets.push_back(CheckedAdd(offsets.back(), aligned));
  return offsets;
}

absl::Status CheckClusterBody(const ClusterBody& body) {
  FT_RETURN_IF_ERROR(CheckSpace(body));
  for (size_t i = 0; i < body.inputs.size(); ++i)
    FT_RETURN_IF_ERROR(At("input", i, CheckBuffer(body.inputs[i])));
  for (size_t i = 0; i < body.results.size(); ++i)
    FT_RETURN_IF_ERROR(At("result", i, CheckBuffer(body.results[i])));
  for (size_t i = 0; i < body.reads.size(); ++i)
    FT_RETURN_IF_ERROR(At("read", i, CheckRead(body, body.reads[i])));
  for (size_t i = 0; i < body.ops.size(); ++i) {
    if (body.ops[i].kind == Op::Kind::kRandomBits) continue;
    for (const uint32_t operand : body.ops[i].operands) {
      if (operand >= body.reads.size() + i)
        return At("op", i, Invalid("its operand {} is no value before it", operand));
    }
  }
  FT_RETURN_IF_ERROR(CheckExtents(body));
  const std::vector<bool> columns = HasColumns(body);
  for (size_t i = 0; i < body.ops.size(); ++i)
    FT_RETURN_IF_ERROR(At("op", i, CheckOp(body, body.ops[i], columns)));
  for (size_t i = 0; i < body.outputs.size(); ++i)
    FT_RETURN_IF_ERROR(At("output", i, CheckOutput(body, body.outputs[i], columns)));
  for (size_t i = 0; i < body.results.size(); ++i)
    FT_RETURN_IF_ERROR(At("result", i, CheckResult(body, static_cast<uint32_t>(i))));
  return absl::OkStatus();
}

// Writes have places of their own. So who reads an element is where it is written, if no read has another
// place.
bool MayTakePlaceOf(const ClusterBody& body, uint32_t input, uint32_t result) {
  const ClusterBody::Buffer &from = body.inputs[input], &to = body.results[result];
  if (from.state || !(from == to)) return false;
  for (const ClusterBody::Output& output : body.outputs)
    if (output.acc == static_cast<int64_t>(input) && output.result != result) return false;
  return std::all_of(body.reads.begin(), body.reads.end(), [&](const ClusterBody::Read& read) {
    return read.input != input ||
           std::any_of(body.outputs.begin(), body.outputs.end(), [&](const ClusterBody::Output& output) {
             return output.result == result && !output.over_rows && output.place == read.place;
           });
  });
}

std::vector<bool> HasColumns(const ClusterBody& body) {
  std::vector<bool> columns(body.values());
  for (size_t i = 0; i < body.reads.size(); ++i) columns[i] = body.reads[i].place.column_stride != 0;
  for (size_t i = 0; i < body.ops.size(); ++i) {
    const Op& op = body.ops[i];
    columns[body.reads.size() + i] =
        op.kind == Op::Kind::kRandomBits || op.kind == Op::Kind::kIota
            ? op.place.column_stride != 0
            : op.kind != Op::Kind::kReduce && std::any_of(op.operands.begin(), op.operands.end(),
                                                          [&](uint32_t value) { return columns[value]; });
  }
  return columns;
}

std::vector<int> LevelsOf(const ClusterBody& body) {
  std::vector<int> levels(body.values());
  for (size_t i = 0; i < body.ops.size(); ++i) {
    if (body.ops[i].kind == Op::Kind::kRandomBits) continue;
    int& level = levels[body.reads.size() + i];
    for (const uint32_t operand : body.ops[i].operands) level = std::max(level, levels[operand]);
    if (body.ops[i].kind == Op::Kind::kReduce) ++level;
  }
  return levels;
}

}  // namespace ft
