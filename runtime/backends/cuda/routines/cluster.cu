#include <algorithm>
#include <climits>

#include "runtime/backends/cuda/routines/cluster.h"
#include "runtime/backends/cuda/routines/gpu.h"
#include "runtime/backends/cuda/routines/primitive_functions.h"

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
using Bits32 = uint32_t;

__device__ __forceinline__ float FloatOf(Bits32 bits) { return __uint_as_float(bits); }
__device__ __forceinline__ Integer IntegerOf(Bits32 bits) {
  return {static_cast<int64_t>(static_cast<int32_t>(bits))};
}

__device__ __forceinline__ Bits32 Rounded(float value, DType dtype) {
  if (dtype == DType::kBF16) return __float_as_uint(ToFloat(FromFloat<BF16>(value)));
  if (dtype == DType::kF16) return __float_as_uint(ToFloat(FromFloat<F16>(value)));
  return __float_as_uint(value);
}
__device__ __forceinline__ Bits32 Rounded(Integer value, DType) { return static_cast<Bits32>(value.value); }

__device__ __forceinline__ Bits32 ReadElement(const void* data, DType dtype, int64_t i) {
  if (IsReal(dtype))
    return __float_as_uint(primitive::Widened(primitive::Load<float>(data, dtype, i), dtype));
  return static_cast<Bits32>(primitive::Load<float>(data, dtype, i));
}

__device__ __forceinline__ void WriteElement(void* data, DType dtype, int64_t i, Bits32 value) {
  if (IsReal(dtype)) {
    primitive::Store(data, dtype, i, FloatOf(value));
  } else {
    primitive::Store(data, dtype, i, IntegerOf(value));
  }
}

template <typename T>
__device__ __forceinline__ T Combined(ReductionKind kind, T a, T b) {
  if (kind == ReductionKind::kSum) return a + b;
  const bool first = kind == ReductionKind::kMax ? a > b : a < b;
  return primitive::Select(primitive::IsNan(a) || first, a, b);
}
// Of values of this type; not rounded to it.
__device__ __forceinline__ Bits32 Combined(ReductionKind kind, DType dtype, Bits32 a, Bits32 b) {
  if (IsReal(dtype)) return __float_as_uint(Combined(kind, FloatOf(a), FloatOf(b)));
  return static_cast<Bits32>(Combined(kind, IntegerOf(a), IntegerOf(b)).value);
}

__device__ __forceinline__ Bits32 IdentityOf(ReductionKind kind, DType dtype) {
  if (kind == ReductionKind::kSum) return 0;
  const bool is_max = kind == ReductionKind::kMax;
  if (IsReal(dtype)) return is_max ? 0xFF800000u : 0x7F800000u;  // infinities
  return static_cast<Bits32>(is_max ? INT_MIN : INT_MAX);
}

// What sums of values of this type are held as.
__device__ __forceinline__ DType AccumulatorOf(DType dtype) {
  return IsReal(dtype) ? DType::kF32 : DType::kI32;
}

// One thread's view of a row: its columns are thread, thread + 64, ...
class RowWalk {
 public:
  __device__ RowWalk(const ClusterArgs& args, Bits32* lanes)
      : args_(args), lanes_(lanes), thread_(static_cast<int>(threadIdx.x)) {}

  __device__ void Walk(int64_t row) {
    row_ = row;
    columns_ = row + 1 == args_.rows ? args_.last_columns : args_.columns;
    ReadInputs(/*of_columns=*/false, 0);
    for (int level = 0; level <= args_.last_level; ++level) {
      Compute(/*of_columns=*/false, level, level);
      if (level < args_.last_level) Reduce(level);
    }
    for (int64_t column = thread_; column < columns_; column += kClusterThreads) {
      ReadInputs(/*of_columns=*/true, column);
      Compute(/*of_columns=*/true, 0, args_.last_level);
      WriteColumn(column);
    }
    __syncthreads();  // an output may be where all threads have read an input
    if (thread_ == 0) WriteRow();
  }

 private:
  __device__ DType DtypeOf(int value) const {
    return value < args_.inputs ? args_.in[value].dtype : args_.op[value - args_.inputs].dtype;
  }

  __device__ void ReadInputs(bool of_columns, int64_t column) {
    for (int i = 0; i < args_.inputs; ++i) {
      const ClusterArgs::Input& in = args_.in[i];
      if (in.columns != of_columns) continue;
      const int64_t at = row_ % in.rows;
      values_[i] = ReadElement(in.data, in.dtype, of_columns ? at * args_.columns + column : at);
    }
  }

  __device__ void Compute(bool of_columns, int from_level, int to_level) {
    for (int i = 0; i < args_.ops; ++i) {
      const ClusterArgs::Op& op = args_.op[i];
      if (op.columns != of_columns || op.level < from_level || op.level > to_level) continue;
      if (op.kind != OpKind::kReduce) values_[args_.inputs + i] = ValueOf(op);
    }
  }

  __device__ Bits32 ValueOf(const ClusterArgs::Op& op) const {
    if (op.kind == OpKind::kFill) return Rounded(static_cast<float>(op.parameters[0]), op.dtype);
    const DType dtype = DtypeOf(op.operands[op.count - 1]);
    if (op.kind == OpKind::kConvert) return Converted(values_[op.operands[0]], dtype, op.dtype);
    return IsReal(dtype) ? Computed<float>(op) : Computed<Integer>(op);
  }

  template <typename T>
  __device__ Bits32 Computed(const ClusterArgs::Op& op) const {
    T in[kMaxElementwiseOperands];
    for (int i = 0; i < kMaxElementwiseOperands; ++i) {
      const int value = op.operands[i < op.count ? i : 0];
      in[i] = As<T>(values_[value], DtypeOf(value));
    }
    const T result = primitive::Of(op.function, in, op.parameters[0], op.parameters[1]);
    // Comparisons of floats give truth values.
    if (IsReal(op.dtype)) return Rounded(result, op.dtype);
    return static_cast<Bits32>(primitive::ToInteger(result, DType::kI32).value);
  }

  // Conditions stand beside floats too.
  template <typename T>
  __device__ T As(Bits32 value, DType dtype) const {
    if constexpr (std::is_same_v<T, float>) {
      return IsReal(dtype) ? FloatOf(value) : static_cast<float>(IntegerOf(value).value);
    } else {
      return IntegerOf(value);
    }
  }

  __device__ Bits32 Converted(Bits32 value, DType from, DType to) const {
    if (IsReal(from) && IsReal(to)) return Rounded(FloatOf(value), to);
    if (IsReal(to)) return Rounded(static_cast<float>(IntegerOf(value).value), to);
    const Integer result = IsReal(from) ? primitive::Converted<Integer>(FloatOf(value), to)
                                        : primitive::Converted<Integer>(IntegerOf(value), to);
    return static_cast<Bits32>(result.value);
  }

  // Those whose operands are known after `level` others.
  __device__ void Reduce(int level) {
    const auto is_now = [&](const ClusterArgs::Op& op) {
      return op.kind == OpKind::kReduce && op.level == level + 1;
    };
    for (int i = 0; i < args_.ops; ++i)
      if (is_now(args_.op[i]))
        values_[args_.inputs + i] = IdentityOf(args_.op[i].reduction, args_.op[i].dtype);
    for (int64_t column = thread_; column < columns_; column += kClusterThreads) {
      ReadInputs(/*of_columns=*/true, column);
      Compute(/*of_columns=*/true, 0, level);
      for (int i = 0; i < args_.ops; ++i) {
        const ClusterArgs::Op& op = args_.op[i];
        Bits32& lane = values_[args_.inputs + i];
        if (is_now(op)) lane = Combined(op.reduction, op.dtype, lane, values_[op.operands[0]]);
      }
    }
    for (int i = 0; i < args_.ops; ++i)
      if (is_now(args_.op[i])) values_[args_.inputs + i] = Joined(args_.op[i], values_[args_.inputs + i]);
  }

  // Of the lanes of all threads.
  __device__ Bits32 Joined(const ClusterArgs::Op& op, Bits32 lane) {
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
    const Bits32 sum = lanes_[0];
    __syncthreads();  // before another value is joined
    return IsReal(op.dtype) ? Rounded(FloatOf(sum), op.dtype) : sum;
  }

  __device__ void WriteColumn(int64_t column) const {
    for (int i = 0; i < args_.outputs; ++i) {
      const ClusterArgs::Output& out = args_.out[i];
      if (out.partials != nullptr) {
        const DType dtype = AccumulatorOf(DtypeOf(out.value));
        const int64_t at = row_ / args_.block_rows * args_.columns + column;
        const Bits32 sum = row_ % args_.block_rows == 0 ? IdentityOf(out.reduction, dtype)
                                                        : ReadElement(out.partials, dtype, at);
        WriteElement(out.partials, dtype, at, Combined(out.reduction, dtype, sum, values_[out.value]));
      } else if (out.columns) {
        WriteElement(out.data, out.dtype, row_ * args_.columns + column, values_[out.value]);
      }
    }
  }

  __device__ void WriteRow() const {
    for (int i = 0; i < args_.outputs; ++i) {
      const ClusterArgs::Output& out = args_.out[i];
      if (!out.columns) WriteElement(out.data, out.dtype, row_, values_[out.value]);
    }
  }

  const ClusterArgs& args_;
  Bits32* const lanes_;
  const int thread_;
  int64_t row_ = 0, columns_ = 0;
  Bits32 values_[kMaxClusterValues];
};

// A block takes `rows` rows that follow each other, then those a whole grid later.
__global__ void __launch_bounds__(kClusterThreads) ClusterKernel(ClusterArgs args, int64_t rows) {
  __shared__ Bits32 lanes[kClusterThreads];
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
    const DType dtype = IsReal(out.dtype) ? DType::kF32 : DType::kI32;
    Bits32 sum = ReadElement(out.partials, dtype, column);
    for (int64_t block = 1; block < blocks; ++block)
      sum = Combined(out.reduction, dtype, sum,
                     ReadElement(out.partials, dtype, block * args.columns + column));
    WriteElement(out.data, out.dtype, column, sum);
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
