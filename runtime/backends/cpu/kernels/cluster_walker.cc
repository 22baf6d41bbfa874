#include "runtime/backends/cpu/kernels/cluster_walker.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/backends/cpu/routines/primitives.h"

namespace ft::cpu {
namespace {

using Op = ClusterBody::Op;

constexpr int64_t kLanes = kClusterLanes;

// What partial results are held as.
DType AccumulatorOf(DType dtype) { return IsFloat(dtype) ? DType::kF32 : DType::kI32; }

Elementwise FunctionOf(ReductionKind kind) {
  if (kind == ReductionKind::kSum) return Elementwise::kAdd;
  return kind == ReductionKind::kMax ? Elementwise::kMaximum : Elementwise::kMinimum;
}

void* Behind(void* chunk, DType dtype, int64_t elements) {
  return static_cast<char*>(chunk) + elements * (IsFloat(dtype) ? sizeof(float) : sizeof(int64_t));
}

void FillChunk(DType dtype, double number, void* chunk) {
  if (IsFloat(dtype)) {
    *static_cast<float*>(chunk) = static_cast<float>(number);
  } else {
    *static_cast<int64_t*>(chunk) = static_cast<int64_t>(number);
  }
  Spread(dtype, kLanes, chunk);
}

}  // namespace

struct ClusterWalker::Scratch {
  alignas(64) std::array<std::array<int64_t, kLanes>, kMaxClusterValues> chunks;

  void* operator[](size_t value) { return chunks[value].data(); }
};

ClusterWalker::ClusterWalker(ClusterOperands operands, const Routines& routines)
    : body_(std::move(operands.body)),
      addresses_(std::move(operands.addresses)),
      routines_(routines),
      mover_{routines.convert},
      has_columns_(HasColumns(body_)),
      levels_(LevelsOf(body_)) {
  last_level_ = levels_.empty() ? 0 : *std::max_element(levels_.begin(), levels_.end());
}

void ClusterWalker::Rows(int64_t begin, int64_t end) const {
  Scratch scratch;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t columns = row + 1 == body_.rows ? body_.last_columns : body_.columns;
    ReadInputs(/*of_columns=*/false, row, 0, 1, scratch);
    for (int level = 0; level <= last_level_; ++level) {
      ComputeOps(/*of_columns=*/false, level, level, kLanes, scratch);
      if (level < last_level_) Reduce(level, row, columns, scratch);
    }
    WriteOutputs(row, columns, scratch);
  }
}

void ClusterWalker::ReadInputs(bool of_columns, int64_t row, int64_t column, int64_t n,
                               Scratch& scratch) const {
  for (size_t i = 0; i < body_.inputs.size(); ++i) {
    const ClusterBody::Input& input = body_.inputs[i];
    if (input.columns != of_columns) continue;
    const int64_t at = row % input.rows;
    mover_.Read(InputAt(i), input.dtype, of_columns ? at * body_.columns + column : at, n, scratch[i]);
    if (!of_columns) Spread(input.dtype, kLanes, scratch[i]);
  }
}

void ClusterWalker::ComputeOps(bool of_columns, int from_level, int to_level, int64_t n,
                               Scratch& scratch) const {
  for (size_t i = 0; i < body_.ops.size(); ++i) {
    const size_t value = body_.inputs.size() + i;
    if (has_columns_[value] == of_columns && levels_[value] >= from_level && levels_[value] <= to_level &&
        body_.ops[i].kind != Op::Kind::kReduce)
      Compute(i, n, scratch);
  }
}

void ClusterWalker::Compute(size_t index, int64_t n, Scratch& scratch) const {
  const Op& op = body_.ops[index];
  void* result = scratch[body_.inputs.size() + index];
  if (op.kind == Op::Kind::kFill) {
    FillChunk(op.dtype, op.parameters[0], result);
  } else if (op.kind == Op::Kind::kConvert) {
    ConvertChunk(scratch[op.operands[0]], body_.dtype(op.operands[0]), result, op.dtype, n);
  } else {
    const auto function = static_cast<size_t>(op.function);
    const void* in[kMaxElementwiseOperands];
    for (size_t k = 0; k < kMaxElementwiseOperands; ++k)
      in[k] = k < op.operands.size() ? scratch[op.operands[k]] : in[0];
    double parameters[2] = {};
    std::copy(op.parameters.begin(), op.parameters.end(), parameters);
    const bool of_floats = IsFloat(body_.dtype(op.operands.back()));
    const PrimitiveRoutines& primitives = routines_.primitives;
    (of_floats ? primitives.of_floats : primitives.of_integers)[function](in, result, parameters, n);
  }
  Round(op.dtype, n, result);
}

// The reductions whose operands are known after `level` others.
void ClusterWalker::Reduce(int level, int64_t row, int64_t columns, Scratch& scratch) const {
  const auto each = [&](auto visit) {
    for (size_t i = 0; i < body_.ops.size(); ++i) {
      const size_t value = body_.inputs.size() + i;
      if (body_.ops[i].kind == Op::Kind::kReduce && levels_[value] == level + 1)
        visit(body_.ops[i], scratch[value]);
    }
  };
  each([&](const Op& op, void* lanes) { SetIdentity(op.reduction, op.dtype, lanes); });
  for (int64_t column = 0; column < columns; column += kLanes) {
    const int64_t n = std::min(kLanes, columns - column);
    ReadInputs(/*of_columns=*/true, row, column, n, scratch);
    ComputeOps(/*of_columns=*/true, 0, level, n, scratch);
    each([&](const Op& op, void* lanes) { Add(op.reduction, op.dtype, n, lanes, scratch[op.operands[0]]); });
  }
  each([&](const Op& op, void* lanes) {
    Join(op.reduction, op.dtype, lanes);
    Round(op.dtype, 1, lanes);
    Spread(op.dtype, kLanes, lanes);
  });
}

// All values of 64 columns are known before one is written, since an output may be in the place of an input.
void ClusterWalker::WriteOutputs(int64_t row, int64_t columns, Scratch& scratch) const {
  for (int64_t column = 0; column < columns; column += kLanes) {
    const int64_t n = std::min(kLanes, columns - column);
    ReadInputs(/*of_columns=*/true, row, column, n, scratch);
    ComputeOps(/*of_columns=*/true, 0, last_level_, n, scratch);
    for (size_t i = 0; i < body_.outputs.size(); ++i) {
      const ClusterBody::Output& output = body_.outputs[i];
      if (output.columns && !output.over_rows)
        mover_.Write(scratch[output.value], n, OutputAt(i), output.dtype, row * body_.columns + column);
    }
    AddPartials(row, column, n, scratch);
  }
  for (size_t i = 0; i < body_.outputs.size(); ++i) {
    const ClusterBody::Output& output = body_.outputs[i];
    if (!output.columns) mover_.Write(scratch[output.value], 1, OutputAt(i), output.dtype, row);
  }
}

void ClusterWalker::AddPartials(int64_t row, int64_t column, int64_t n, Scratch& scratch) const {
  const int64_t at = row / body_.BlockRows() * body_.columns + column;
  size_t partial = 0;
  for (const ClusterBody::Output& output : body_.outputs) {
    if (!output.over_rows) continue;
    const DType dtype = AccumulatorOf(body_.dtype(output.value));
    alignas(64) std::array<int64_t, kLanes> sum;
    void* partials = PartialAt(partial++);
    if (row % body_.BlockRows() == 0) {
      SetIdentity(output.reduction, dtype, &sum);
    } else {
      mover_.Read(partials, dtype, at, n, &sum);
    }
    Add(output.reduction, dtype, n, &sum, scratch[output.value]);
    mover_.Write(&sum, n, partials, dtype, at);
  }
}

void ClusterWalker::Combine(int64_t begin, int64_t end) const {
  alignas(64) std::array<int64_t, kLanes> sum, more;
  size_t partial = 0;
  for (size_t i = 0; i < body_.outputs.size(); ++i) {
    const ClusterBody::Output& output = body_.outputs[i];
    if (!output.over_rows) continue;
    const DType dtype = AccumulatorOf(body_.dtype(output.value));
    void* partials = PartialAt(partial++);
    for (int64_t column = begin; column < end; column += kLanes) {
      const int64_t n = std::min(kLanes, end - column);
      mover_.Read(partials, dtype, column, n, &sum);
      for (int64_t block = 1; block < body_.Blocks(); ++block) {
        mover_.Read(partials, dtype, block * body_.columns + column, n, &more);
        Add(output.reduction, dtype, n, &sum, &more);
      }
      mover_.Write(&sum, n, OutputAt(i), output.dtype, column);
    }
  }
}

void ClusterWalker::Round(DType dtype, int64_t n, void* chunk) const {
  if (dtype == DType::kF32 || dtype == DType::kU8) return;
  std::array<int32_t, kLanes> rounded;
  mover_.Write(chunk, n, rounded.data(), dtype, 0);
  mover_.Read(rounded.data(), dtype, 0, n, chunk);
}

void ClusterWalker::SetIdentity(ReductionKind kind, DType dtype, void* chunk) const {
  const bool of_floats = IsFloat(dtype);
  const double least = of_floats ? -std::numeric_limits<double>::infinity() : -0x1p31;
  const double most = of_floats ? std::numeric_limits<double>::infinity() : 0x1p31 - 1;
  FillChunk(dtype, kind == ReductionKind::kSum ? 0 : kind == ReductionKind::kMax ? least : most, chunk);
}

void ClusterWalker::Add(ReductionKind kind, DType dtype, int64_t n, void* sum, const void* value) const {
  const auto function = static_cast<size_t>(FunctionOf(kind));
  const void* in[] = {sum, value, value};
  const double none[2] = {};
  const PrimitiveRoutines& primitives = routines_.primitives;
  (IsFloat(dtype) ? primitives.of_floats : primitives.of_integers)[function](in, sum, none, n);
}

void ClusterWalker::Join(ReductionKind kind, DType dtype, void* lanes) const {
  constexpr int64_t kVector = kLanes / 4;
  const auto lane = [&](int64_t i) { return Behind(lanes, dtype, i); };
  Add(kind, dtype, kVector, lane(0), lane(kVector));
  Add(kind, dtype, kVector, lane(2 * kVector), lane(3 * kVector));
  Add(kind, dtype, kVector, lane(0), lane(2 * kVector));
  for (int64_t half = kVector / 2; half > 0; half /= 2) Add(kind, dtype, half, lane(0), lane(half));
}

}  // namespace ft::cpu
