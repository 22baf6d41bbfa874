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

template <typename... Args>
absl::Status Invalid(fmt::format_string<Args...> format, Args&&... args) {
  return absl::InvalidArgumentError(fmt::format(format, std::forward<Args>(args)...));
}

bool IsType(DType dtype) { return IsFloat(dtype) || dtype == DType::kI32 || dtype == DType::kU8; }

absl::Status CheckSpace(const ClusterBody& body) {
  const bool sized = body.rows > 0 && body.columns > 0 && body.last_columns > 0 &&
                     body.last_columns <= body.columns &&
                     CheckedMul(body.rows, body.columns) <= kMaxUnitElements;
  if (!sized)
    return Invalid("a space of {} rows and {} columns, {} in the last, is none", body.rows, body.columns,
                   body.last_columns);
  if (body.values() > kMaxClusterValues || body.inputs.size() > kMaxClusterInputs || body.outputs.empty() ||
      body.outputs.size() > kMaxClusterOutputs)
    return Invalid("{} values, {} of them inputs, and {} outputs: there may be {}, {} and 1 to {}",
                   body.values(), body.inputs.size(), body.outputs.size(), kMaxClusterValues,
                   kMaxClusterInputs, kMaxClusterOutputs);
  return absl::OkStatus();
}

// A space is no larger than what is in memory: its rows are those of something, its columns too.
absl::Status CheckExtents(const ClusterBody& body) {
  bool has_rows = body.rows == 1, has_columns = body.columns == 1;
  for (const ClusterBody::Input& input : body.inputs) {
    has_rows |= input.rows == body.rows;
    has_columns |= input.columns;
  }
  for (const ClusterBody::Output& output : body.outputs) {
    has_rows |= !output.over_rows;
    has_columns |= output.columns;
  }
  return has_rows && has_columns ? absl::OkStatus()
                                 : Invalid("no input or output has its rows, or none has its columns");
}

absl::Status CheckInput(const ClusterBody& body, const ClusterBody::Input& input) {
  if (!IsType(input.dtype)) return Invalid("it has elements of type {}", Name(input.dtype));
  if (input.rows <= 0 || body.rows % input.rows != 0)
    return Invalid("its {} rows do not divide those of the space, {}", input.rows, body.rows);
  return absl::OkStatus();
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

absl::Status CheckOp(const ClusterBody& body, const Op& op, const std::vector<bool>& columns) {
  if (!IsType(op.dtype)) return Invalid("it has elements of type {}", Name(op.dtype));
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

absl::Status CheckOutput(const ClusterBody& body, const ClusterBody::Output& output,
                         const std::vector<bool>& columns) {
  if (output.value >= body.values()) return Invalid("its value {} is none", output.value);
  const DType dtype = body.dtype(output.value);
  if (!output.over_rows) {
    if (output.dtype != dtype)
      return Invalid("it has type {}, its value {}", Name(output.dtype), Name(dtype));
    return columns[output.value] && !output.columns ? Invalid("its value has columns") : absl::OkStatus();
  }
  const bool same_kind = output.dtype == dtype || (IsFloat(output.dtype) && IsFloat(dtype));
  if (!same_kind || dtype == DType::kU8 || output.reduction > ReductionKind::kMin || !output.columns)
    return Invalid("it is no reduction over rows to type {}", Name(output.dtype));
  return body.last_columns == body.columns ? absl::OkStatus() : Invalid("its last row is shorter");
}

absl::Status At(std::string_view what, size_t index, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::InvalidArgumentError(fmt::format("{} {}: {}", what, index, std::string(status.message())));
}

}  // namespace

int64_t ClusterBody::BlockRows() const {
  constexpr int64_t kBlocks = 64, kFewest = 16;
  return std::max(kFewest, CeilDiv(rows, kBlocks));
}

int64_t ClusterBody::PartialBytesEach() const { return CheckedMul(Blocks(), columns, 4); }

std::vector<int64_t> ClusterBody::PartialOffsets(int64_t each) const {
  constexpr int64_t kAlignment = 64;
  const int64_t aligned = CheckedMul(CeilDiv(each, kAlignment), kAlignment);
  std::vector<int64_t> offsets = {0};
  for (const Output& output : outputs)
    if (output.over_rows) offsets.push_back(CheckedAdd(offsets.back(), aligned));
  return offsets;
}

absl::Status CheckClusterBody(const ClusterBody& body) {
  FT_RETURN_IF_ERROR(CheckSpace(body));
  FT_RETURN_IF_ERROR(CheckExtents(body));
  for (size_t i = 0; i < body.inputs.size(); ++i)
    FT_RETURN_IF_ERROR(At("input", i, CheckInput(body, body.inputs[i])));
  for (size_t i = 0; i < body.ops.size(); ++i) {
    for (const uint32_t operand : body.ops[i].operands) {
      if (operand >= body.inputs.size() + i)
        return At("op", i, Invalid("its operand {} is no value before it", operand));
    }
  }
  const std::vector<bool> columns = HasColumns(body);
  for (size_t i = 0; i < body.ops.size(); ++i)
    FT_RETURN_IF_ERROR(At("op", i, CheckOp(body, body.ops[i], columns)));
  for (size_t i = 0; i < body.outputs.size(); ++i)
    FT_RETURN_IF_ERROR(At("output", i, CheckOutput(body, body.outputs[i], columns)));
  return absl::OkStatus();
}

bool MayTakePlaceOf(const ClusterBody& body, const ClusterBody::Input& input,
                    const ClusterBody::Output& output) {
  return !output.over_rows && input.rows == body.rows && input.columns == output.columns &&
         input.dtype == output.dtype;
}

std::vector<bool> HasColumns(const ClusterBody& body) {
  std::vector<bool> columns(body.values());
  for (size_t i = 0; i < body.inputs.size(); ++i) columns[i] = body.inputs[i].columns;
  for (size_t i = 0; i < body.ops.size(); ++i) {
    const Op& op = body.ops[i];
    columns[body.inputs.size() + i] =
        op.kind != Op::Kind::kReduce &&
        std::any_of(op.operands.begin(), op.operands.end(), [&](uint32_t value) { return columns[value]; });
  }
  return columns;
}

std::vector<int> LevelsOf(const ClusterBody& body) {
  std::vector<int> levels(body.values());
  for (size_t i = 0; i < body.ops.size(); ++i) {
    int& level = levels[body.inputs.size() + i];
    for (const uint32_t operand : body.ops[i].operands) level = std::max(level, levels[operand]);
    if (body.ops[i].kind == Op::Kind::kReduce) ++level;
  }
  return levels;
}

}  // namespace ft
