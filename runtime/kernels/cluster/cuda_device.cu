#include <algorithm>
#include <climits>

#include "runtime/backends/cuda/device_code/gpu.h"
#include "runtime/backends/cuda/device_code/philox.h"
#include "runtime/kernels/cluster/cuda_device.h"
#include "runtime/kernels/cluster/cuda_primitives.h"

namespace ft::cuda {
namespace {

using OpKind = ClusterOpKind;
using primitive::Integer;

constexpr int kClusterThreads = kClusterLanes;
constexpr int kLaneVector = kClusterThreads / 4;

__device__ __forceinline__ bool IsReal(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
}

// A value of any type: the bits of a float that is rounded to it, or an integer.
using Bits64 = uint64_t;

__device__ __forceinline__ float FloatOf(Bits64 word) { return __uint_as_float(static_cast<uint32_t>(word)); }
__device__ __forceinline__ Bits64 WordOf(float value) { return __float_as_uint(value); }
__device__ __forceinline__ Integer IntegerOf(Bits64 word) { return {static_cast<int64_t>(word)}; }

__device__ __forceinline__ Bits64 Rounded(float value, DType dtype) {
  if (dtype == DType::kBF16) return WordOf(ToFloat(FromFloat<BF16>(value)));
  if (dtype == DType::kF16) return WordOf(ToFloat(FromFloat<F16>(value)));
  return WordOf(value);
}
// 32 bits wrap around, too.
__device__ __forceinline__ Bits64 Rounded(Integer value, DType dtype) {
  return static_cast<Bits64>(dtype == DType::kI32 ? static_cast<int32_t>(value.value) : value.value);
}

__device__ __forceinline__ Bits64 ReadElement(const void* data, DType dtype, int64_t i) {
  if (IsReal(dtype)) return WordOf(primitive::Widened(primitive::Load<float>(data, dtype, i), dtype));
  return static_cast<Bits64>(primitive::Widened(primitive::Load<Integer>(data, dtype, i), dtype).value);
}

__device__ __forceinline__ void WriteElement(void* data, DType dtype, int64_t i, Bits64 value) {
  if (IsReal(dtype)) {
    primitive::Store(data, dtype, i, FloatOf(value));
  } else {
    primitive::Store(data, dtype, i, IntegerOf(value));
  }
}

__device__ __forceinline__ int64_t RowBegin(const ClusterArgs::Place& place, int64_t row) {
  int64_t element = place.begin;
  for (int i = 0; i < place.steps; ++i) {
    const ClusterArgs::Step& step = place.step[i];
    element += row / step.every % step.extent * step.stride;
  }
  return element;
}

template <typename T>
__device__ __forceinline__ T Combined(ReductionKind kind, T a, T b) {
  if (kind == ReductionKind::kSum) return a + b;
  const bool first = kind == ReductionKind::kMax ? a > b : a < b;
  return primitive::Select(primitive::IsNan(a) || first, a, b);
}
// Of values of this type; not rounded to it.
__device__ __forceinline__ Bits64 Combined(ReductionKind kind, DType dtype, Bits64 a, Bits64 b) {
  if (IsReal(dtype)) return WordOf(Combined(kind, FloatOf(a), FloatOf(b)));
  return Rounded(Combined(kind, IntegerOf(a), IntegerOf(b)), dtype);
}

__device__ __forceinline__ Bits64 IdentityOf(ReductionKind kind, DType dtype) {
  if (kind == ReductionKind::kSum) return 0;
  const bool is_max = kind == ReductionKind::kMax;
  if (IsReal(dtype)) return is_max ? 0xFF800000u : 0x7F800000u;  // infinities
  const int64_t least = dtype == DType::kI64 ? INT64_MIN : INT32_MIN;
  return static_cast<Bits64>(is_max ? least : -(least + 1));
}

// What sums of values of this type are held as.
__device__ __forceinline__ DType AccumulatorOf(DType dtype) { return IsReal(dtype) ? DType::kF32 : dtype; }

// One thread's view of a row: its columns are thread, thread + 64, ...
class RowWalk {
 public:
  __device__ RowWalk(const ClusterArgs& args, Bits64* lanes)
      : args_(args), lanes_(lanes), thread_(static_cast<int>(threadIdx.x)) {}

  __device__ void Walk(int64_t row) {
    row_ = row;
    columns_ = row + 1 == args_.rows ? args_.last_columns : args_.columns;
    column_ = 0;
    ReadInputs(/*of_columns=*/false);
    for (int level = 0; level <= args_.last_level; ++level) {
      Compute(/*of_columns=*/false, level, level);
      if (level < args_.last_level) Reduce(level);
    }
    for (int64_t column = thread_; column < columns_; column += kClusterThreads) {
      column_ = column;
      ReadInputs(/*of_columns=*/true);
      Compute(/*of_columns=*/true, 0, args_.last_level);
      WriteColumn(column);
    }
    __syncthreads();  // an output may be where all threads have read an input
    if (thread_ == 0) WriteRow();
  }

 private:
  __device__ DType DtypeOf(int value) const {
    return value < args_.reads ? args_.read[value].dtype : args_.op[value - args_.reads].dtype;
  }

  __device__ void ReadInputs(bool of_columns) {
    for (int i = 0; i < args_.reads; ++i) {
      const ClusterArgs::Read& read = args_.read[i];
      if ((read.place.column_stride != 0) == of_columns)
        values_[i] = ReadElement(read.data, read.dtype, ElementAt(read.place));
    }
  }

  __device__ int64_t ElementAt(const ClusterArgs::Place& place) const {
    return RowBegin(place, row_) + column_ * place.column_stride;
  }

  __device__ void Compute(bool of_columns, int from_level, int to_level) {
    for (int i = 0; i < args_.ops; ++i) {
      const ClusterArgs::Op& op = args_.op[i];
      if (op.columns != of_columns || op.level < from_level || op.level > to_level) continue;
      if (op.kind != OpKind::kReduce) values_[args_.reads + i] = ValueOf(op);
    }
  }

  __device__ Bits64 ValueOf(const ClusterArgs::Op& op) const {
    if (op.kind == OpKind::kFill) return Rounded(static_cast<float>(op.parameters[0]), op.dtype);
    if (op.kind == OpKind::kRandomBits) return Drawn(op);
    if (op.kind == OpKind::kIota) return Rounded(Integer{ElementAt(DrawOf(op).place)}, op.dtype);
    const DType dtype = DtypeOf(op.operands[op.count - 1]);
    if (op.kind == OpKind::kConvert) return Converted(values_[op.operands[0]], dtype, op.dtype);
    return IsReal(dtype) ? Computed<float>(op) : Computed<Integer>(op);
  }

  __device__ const ClusterArgs::Draw& DrawOf(const ClusterArgs::Op& op) const {
    return args_.draw[static_cast<int>(op.parameters[0])];
  }

  __device__ Bits64 Drawn(const ClusterArgs::Op& op) const {
    const ClusterArgs::Draw& draw = DrawOf(op);
    const uint64_t element = static_cast<uint64_t>(draw.state[2]) * static_cast<uint64_t>(draw.elements) +
                             static_cast<uint64_t>(ElementAt(draw.place));
    const PhiloxKey key = {static_cast<uint64_t>(draw.state[0]), draw.stream,
                           static_cast<uint32_t>(draw.state[1])};
    const uint32_t word = cuda::Word(Philox(key, element / 4), static_cast<uint32_t>(element % 4));
    return Rounded(Integer{static_cast<int64_t>(word)}, op.dtype);
  }

  template <typename T>
  __device__ Bits64 Computed(const ClusterArgs::Op& op) const {
    T in[kMaxElementwiseOperands];
    for (int i = 0; i < kMaxElementwiseOperands; ++i) {
      const int value = op.operands[i < op.count ? i : 0];
      in[i] = As<T>(values_[value], DtypeOf(value));
    }
    const T result = primitive::Of(op.function, in, op.parameters[0], op.parameters[1]);
    // Comparisons of floats give truth values.
    if (IsReal(op.dtype)) return Rounded(result, op.dtype);
    return Rounded(primitive::ToInteger(result, DType::kI32), op.dtype);
  }

  // Conditions stand beside floats too.
  template <typename T>
  __device__ T As(Bits64 value, DType dtype) const {
    if constexpr (std::is_same_v<T, float>) {
      return IsReal(dtype) ? FloatOf(value) : static_cast<float>(IntegerOf(value).value);
    } else {
      return IntegerOf(value);
    }
  }

  __device__ Bits64 Converted(Bits64 value, DType from, DType to) const {
    if (IsReal(from) && IsReal(to)) return Rounded(FloatOf(value), to);
    if (IsReal(to)) return Rounded(static_cast<float>(IntegerOf(value).value), to);
    const Integer result = IsReal(from) ? primitive::Converted<Integer>(FloatOf(value), to)
                                        : primitive::Converted<Integer>(IntegerOf(value), to);
    return Rounded(result, to);
  }

  // Those whose operands are known after `level` others.
  __device__ void Reduce(int level) {
    const auto is_now = [&](const ClusterArgs::Op& op) {
      return op.kind == OpKind::kReduce && op.level == level + 1;
    };
    for (int i = 0; i < args_.ops; ++i)
      if (is_now(args_.op[i]))
        values_[args_.reads + i] = IdentityOf(args_.op[i].reduction, args_.op[i].dtype);
    for (int64_t column = thread_; column < columns_; column += kClusterThreads) {
      column_ = column;
      ReadInputs(/*of_columns=*/true);
      Compute(/*of_columns=*/true, 0, level);
      for (int i = 0; i < args_.ops; ++i) {
        const ClusterArgs::Op& op = args_.op[i];
        Bits64& lane = values_[args_.reads + i];
        if (is_now(op)) lane = Combined(op.reduction, op.dtype, lane, values_[op.operands[0]]);
      }
    }
    for (int i = 0; i < args_.ops; ++i)
      if (is_now(args_.op[i])) values_[args_.reads + i] = Joined(args_.op[i], values_[args_.reads + i]);
  }

  // Of the lanes of all threads.
  __device__ Bits64 Joined(const ClusterArgs::Op& op, Bits64 lane) {
    const auto add = [&](bool here, int distance) {
      __syncthreads();
      if (here)
        lanes_[thread_] = Combined(op.reduction, op.dtype, lanes_[thread_], lanes_[thread_ + distance]);
    };
    lanes_[thread_] = lane;
    add(thread_ % (2 * kLaneVector) < kLaneVector, kLaneVector);
    add(thread_ < kLaneVector, 2 * kLaneVector);
    for (int half = kLaneVector / 2; half > 0; half /= 2) add(thread_ < half, half);
    __syncthreads();
    const Bits64 sum = lanes_[0];
    __syncthreads();  // before another value is joined
    return IsReal(op.dtype) ? Rounded(FloatOf(sum), op.dtype) : sum;
  }

  __device__ void WriteColumn(int64_t column) const {
    for (int i = 0; i < args_.outputs; ++i) {
      const ClusterArgs::Output& out = args_.out[i];
      if (out.partials != nullptr) {
        const DType dtype = AccumulatorOf(DtypeOf(out.value));
        const int64_t at = row_ / args_.block_rows * args_.columns + column;
        const Bits64 sum = row_ % args_.block_rows == 0 ? IdentityOf(out.reduction, dtype)
                                                        : ReadElement(out.partials, dtype, at);
        WriteElement(out.partials, dtype, at, Combined(out.reduction, dtype, sum, values_[out.value]));
      } else if (out.place.column_stride != 0) {
        WriteElement(out.data, out.dtype, ElementAt(out.place), values_[out.value]);
      }
    }
  }

  __device__ void WriteRow() const {
    for (int i = 0; i < args_.outputs; ++i) {
      const ClusterArgs::Output& out = args_.out[i];
      if (out.place.column_stride == 0)
        WriteElement(out.data, out.dtype, RowBegin(out.place, row_), values_[out.value]);
    }
  }

  const ClusterArgs& args_;
  Bits64* const lanes_;
  const int thread_;
  int64_t row_ = 0, columns_ = 0, column_ = 0;
  Bits64 values_[kMaxClusterValues];
};

// A block takes `rows` rows that follow each other, then those a whole grid later.
__global__ void __launch_bounds__(kClusterThreads) ClusterKernel(ClusterArgs args, int64_t rows) {
  __shared__ Bits64 lanes[kClusterThreads];
  RowWalk walk(args, lanes);
  for (int64_t begin = blockIdx.x * rows; begin < args.rows; begin += gridDim.x * rows)
    for (int64_t row = begin; row < begin + rows && row < args.rows; ++row) walk.Walk(row);
}

// A thread has a column of all outputs over rows.
__global__ void __launch_bounds__(kClusterThreads) CombineKernel(ClusterArgs args) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kClusterThreads + threadIdx.x;
  if (column >= args.columns) return;
  const int64_t blocks = (args.rows + args.block_rows - 1) / args.block_rows;
  for (int i = 0; i < args.outputs; ++i) {
    const ClusterArgs::Output& out = args.out[i];
    if (out.partials == nullptr) continue;
    const DType dtype = AccumulatorOf(out.dtype);
    Bits64 sum = ReadElement(out.partials, dtype, column);
    for (int64_t block = 1; block < blocks; ++block)
      sum = Combined(out.reduction, dtype, sum,
                     ReadElement(out.partials, dtype, block * args.columns + column));
    if (out.acc != nullptr) {
      const float before = FloatOf(ReadElement(out.acc, out.dtype, out.place.begin + column));
      sum = WordOf(before + FloatOf(Rounded(FloatOf(sum), out.dtype)));
    }
    WriteElement(out.data, out.dtype, out.place.begin + column, sum);
  }
}

}  // namespace

int Cluster(const ClusterArgs& args, StreamHandle stream) {
  constexpr int64_t kMostBlocks = 1 << 16;
  const int64_t rows = args.block_rows == 0 ? 1 : args.block_rows;
  const int64_t pieces = (args.rows + rows - 1) / rows;
  const LaunchShape shape = {.grid_x = static_cast<unsigned>(std::min(pieces, kMostBlocks)),
                             .block_x = kClusterThreads};
  if (const int error = Launch(ClusterKernel, shape, stream, args, rows); error != 0) return error;
  if (args.block_rows == 0) return 0;
  const int64_t blocks = (args.columns + kClusterThreads - 1) / kClusterThreads;
  return Launch(CombineKernel, {.grid_x = static_cast<unsigned>(blocks), .block_x = kClusterThreads}, stream,
                args);
}

}  // namespace ft::cuda
