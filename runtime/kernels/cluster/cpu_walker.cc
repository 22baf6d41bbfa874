#include "runtime/kernels/cluster/cpu_walker.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/base/philox.h"
#include "runtime/kernels/cluster/cpu_loops.h"

namespace ft::cpu {
namespace {

using Op = ClusterBody::Op;

constexpr int64_t kLanes = kClusterLanes;

// What partial results are held as.
DType AccumulatorOf(DType dtype) { return IsFloat(dtype) ? DType::kF32 : dtype; }

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

ClusterWalker::ClusterWalker(ClusterOperands operands, const Loops& loops)
    : operands_(std::move(operands)),
      body_(operands_.body),
      loops_(loops),
      mover_{loops.convert},
      has_columns_(HasColumns(body_)),
      levels_(LevelsOf(body_)) {
  last_level_ = levels_.empty() ? 0 : *std::max_element(levels_.begin(), levels_.end());
}

void ClusterWalker::Rows(int64_t begin, int64_t end) const {
  Scratch scratch;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t columns = row + 1 == body_.rows ? body_.last_columns : body_.columns;
    const Place of_row = {row, 0, kLanes};
    Read(/*of_columns=*/false, of_row, scratch);
    for (int level = 0; level <= last_level_; ++level) {
      ComputeOps(/*of_columns=*/false, level, level, of_row, scratch);
      if (level < last_level_) Reduce(level, row, columns, scratch);
    }
    WriteOutputs(row, columns, scratch);
  }
}

void ClusterWalker::Read(bool of_columns, const Place& place, Scratch& scratch) const {
  for (size_t i = 0; i < body_.reads.size(); ++i) {
    if (has_columns_[i] != of_columns) continue;
    const ClusterBody::Place& at = body_.reads[i].place;
    const void* from = InputAt(body_.reads[i].input);
    const int64_t begin = at.RowBegin(place.row) + place.column * at.column_stride, stride = at.column_stride;
    const DType dtype = body_.dtype(i);
    mover_.Read(from, dtype, begin, stride == 1 ? place.n : 1, scratch[i]);
    for (int64_t k = 1; stride > 1 && k < place.n; ++k)
      mover_.Read(from, dtype, begin + k * stride, 1, scratch[i], k);
    if (!of_columns) Spread(dtype, kLanes, scratch[i]);
  }
}

void ClusterWalker::ComputeOps(bool of_columns, int from_level, int to_level, const Place& place,
                               Scratch& scratch) const {
  for (size_t i = 0; i < body_.ops.size(); ++i) {
    const size_t value = body_.reads.size() + i;
    if (has_columns_[value] == of_columns && levels_[value] >= from_level && levels_[value] <= to_level &&
        body_.ops[i].kind != Op::Kind::kReduce)
      Compute(i, place, scratch);
  }
}

// Values without columns have the bits of their one element in all lanes.
void ClusterWalker::Draw(const Op& op, const Place& place, int64_t* words) const {
  const auto* state = static_cast<const int64_t*>(InputAt(op.operands[0]));
  const int64_t stride = op.place.column_stride;
  const int64_t begin = op.place.RowBegin(place.row) + place.column * stride;
  uint64_t element = static_cast<uint64_t>(state[2]) * static_cast<uint64_t>(op.elements) + begin;
  for (int64_t i = 0; i < (stride == 0 ? 1 : place.n); ++i, element += stride)
    words[i] = static_cast<int32_t>(Philox4x32(static_cast<uint64_t>(state[0]), operands_.Stream(op.draw),
                                               static_cast<uint32_t>(state[1]), element / 4)[element % 4]);
  if (stride == 0) Spread(op.dtype, kLanes, words);
}

void ClusterWalker::Count(const Op& op, const Place& place, int64_t* numbers) const {
  const int64_t stride = op.place.column_stride;
  const int64_t begin = op.place.RowBegin(place.row) + place.column * stride;
  for (int64_t i = 0; i < kLanes; ++i) numbers[i] = begin + i * stride;
}

void ClusterWalker::Compute(size_t index, const Place& place, Scratch& scratch) const {
  const Op& op = body_.ops[index];
  const int64_t n = place.n;
  void* result = scratch[body_.reads.size() + index];
  if (op.kind == Op::Kind::kFill) {
    FillChunk(op.dtype, op.parameters[0], result);
  } else if (op.kind == Op::Kind::kRandomBits) {
    Draw(op, place, static_cast<int64_t*>(result));
  } else if (op.kind == Op::Kind::kIota) {
    Count(op, place, static_cast<int64_t*>(result));
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
    const PrimitiveLoops& primitives = loops_.primitives;
    (of_floats ? primitives.of_floats : primitives.of_integers)[function](in, result, parameters, n);
  }
  Round(op.dtype, n, result);
}

// The reductions whose operands are known after `level` others.
void ClusterWalker::Reduce(int level, int64_t row, int64_t columns, Scratch& scratch) const {
  const auto each = [&](auto visit) {
    for (size_t i = 0; i < body_.ops.size(); ++i) {
      const size_t value = body_.reads.size() + i;
      if (body_.ops[i].kind == Op::Kind::kReduce && levels_[value] == level + 1)
        visit(body_.ops[i], scratch[value]);
    }
  };
  each([&](const Op& op, void* lanes) { SetIdentity(op.reduction, op.dtype, lanes); });
  for (int64_t column = 0; column < columns; column += kLanes) {
    const int64_t n = std::min(kLanes, columns - column);
    Read(/*of_columns=*/true, {row, column, n}, scratch);
    ComputeOps(/*of_columns=*/true, 0, level, {row, column, n}, scratch);
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
    Read(/*of_columns=*/true, {row, column, n}, scratch);
    ComputeOps(/*of_columns=*/true, 0, last_level_, {row, column, n}, scratch);
    for (const ClusterBody::Output& output : body_.outputs)
      if (!output.over_rows && output.place.column_stride != 0) Write(output, {row, column, n}, scratch);
    AddPartials(row, column, n, scratch);
  }
  for (const ClusterBody::Output& output : body_.outputs)
    if (output.place.column_stride == 0) Write(output, {row, 0, 1}, scratch);
}

void ClusterWalker::Write(const ClusterBody::Output& output, const Place& place, Scratch& scratch) const {
  const int64_t stride = output.place.column_stride;
  const int64_t begin = output.place.RowBegin(place.row) + place.column * stride;
  const DType dtype = body_.results[output.result].dtype;
  void* to = ResultAt(output.result);
  if (stride <= 1) return mover_.Write(scratch[output.value], place.n, to, dtype, begin);
  for (int64_t i = 0; i < place.n; ++i)
    mover_.Write(Behind(scratch[output.value], dtype, i), 1, to, dtype, begin + i * stride);
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
  for (const ClusterBody::Output& output : body_.outputs) {
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
      const DType result = body_.results[output.result].dtype;
      if (output.acc >= 0) {
        Round(result, n, &sum);
        mover_.Read(InputAt(static_cast<size_t>(output.acc)), result, output.place.begin + column, n, &more);
        Add(output.reduction, dtype, n, &sum, &more);
      }
      mover_.Write(&sum, n, ResultAt(output.result), result, output.place.begin + column);
    }
  }
}

void ClusterWalker::Round(DType dtype, int64_t n, void* chunk) const {
  if (dtype == DType::kF32 || dtype == DType::kU8 || dtype == DType::kI64) return;
  std::array<int32_t, kLanes> rounded;
  mover_.Write(chunk, n, rounded.data(), dtype, 0);
  mover_.Read(rounded.data(), dtype, 0, n, chunk);
}

void ClusterWalker::SetIdentity(ReductionKind kind, DType dtype, void* chunk) const {
  const bool of_floats = IsFloat(dtype);
  if (kind == ReductionKind::kSum || of_floats) {
    const double infinity = std::numeric_limits<double>::infinity();
    return FillChunk(dtype,
                     kind == ReductionKind::kSum   ? 0
                     : kind == ReductionKind::kMax ? -infinity
                                                   : infinity,
                     chunk);
  }
  const int64_t least =
      dtype == DType::kI64 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int32_t>::min();
  std::fill_n(static_cast<int64_t*>(chunk), kLanes, kind == ReductionKind::kMax ? least : -(least + 1));
}

void ClusterWalker::Add(ReductionKind kind, DType dtype, int64_t n, void* sum, const void* value) const {
  const auto function = static_cast<size_t>(FunctionOf(kind));
  const void* in[] = {sum, value, value};
  const double none[2] = {};
  const PrimitiveLoops& primitives = loops_.primitives;
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
