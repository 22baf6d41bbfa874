// copy, reshape, broadcast, split, concat; fill, iota, zero_padding.
#include <algorithm>
#include <bit>
#include <cstring>

#include "fmt/format.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/base/round_float.h"
#include "runtime/kernels/movement/cuda_device.h"
#include "runtime/kernels/movement/cuda_move.h"
#include "runtime/kernels/movement/joined_parts.h"
#include "runtime/kernels/movement/padding.h"

namespace ft::cuda {
namespace {

int64_t Bytes(const Tensor& tensor) { return tensor.elements() * static_cast<int64_t>(SizeOf(tensor.dtype)); }

// Some columns of all rows, in bytes: row r goes from from + r * from_stride to to + r * to_stride.
struct Part {
  const char* from;
  char* to;
  int64_t from_stride;
  int64_t to_stride;
  int64_t bytes;
};

// The largest unit that divides all addresses and strides.
int64_t Unit(const std::vector<Part>& parts) {
  uint64_t all = 16;
  for (const Part& part : parts) {
    all |= reinterpret_cast<uintptr_t>(part.from) | reinterpret_cast<uintptr_t>(part.to);
    all |= static_cast<uint64_t>(part.from_stride | part.to_stride | part.bytes);
  }
  return static_cast<int64_t>(all & -all);
}

struct RowLaunch {
  RowCopyArgs args;
  int unit;
};

// Appends one launch for every kMaxParts parts.
absl::Status AddCopies(const std::vector<Part>& parts, int64_t rows, std::vector<RowLaunch>& launches) {
  const int64_t unit = Unit(parts);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i % kMaxParts == 0) launches.push_back({{{}, 0, rows, 0}, static_cast<int>(unit)});
    RowCopyArgs& args = launches.back().args;
    const Part& part = parts[i];
    const int64_t end = args.columns + part.bytes / unit;
    if (end >= int64_t{1} << 31 || rows * end / 1024 >= (int64_t{1} << 31) - 1) {
      return absl::InvalidArgumentError(
          fmt::format("{} rows of {} units of {} bytes are too many for one launch", rows, end, unit));
    }
    args.parts[args.count++] = {part.from,
                                part.to,
                                part.from_stride / unit,
                                part.to_stride / unit,
                                args.columns,
                                static_cast<uint32_t>(end)};
    args.columns = static_cast<uint32_t>(end);
  }
  return absl::OkStatus();
}

KernelOr MakeCopies(std::vector<RowLaunch> launches) {
  return MakeKernel([launches = std::move(launches)](StreamHandle stream) {
    for (const RowLaunch& launch : launches) {
      if (const int error = CopyRows(launch.args, launch.unit, stream); error != 0) return error;
    }
    return 0;
  });
}

KernelOr MakeCopy(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  const Tensor &x = context.in(0), &r = context.out(0);
  FT_RETURN_IF_ERROR(CheckPresent(x, "x", x.dtype));
  FT_RETURN_IF_ERROR(CheckSize(r, "result", x.elements(), x.dtype));
  // Whole packs, then the bytes after them.
  const int64_t bytes = Bytes(x), body = bytes / 16 * 16;
  const char* from = x.as<char>();
  char* to = r.as<char>();
  std::vector<RowLaunch> launches;
  FT_RETURN_IF_ERROR(AddCopies({{from, to, 0, 0, body}}, 1, launches));
  FT_RETURN_IF_ERROR(AddCopies({{from + body, to + body, 0, 0, bytes - body}}, 1, launches));
  return MakeCopies(std::move(launches));
}

KernelOr MakeBroadcast(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 1, 1));
  FT_ASSIGN_OR_RETURN(const StridedCopy whole, BroadcastCopy(context.in(0), context.out(0)));
  const StridedCopy copy = Simplified(whole);
  if (copy.rank != 2 || copy.from_strides[0] != 0 || copy.from_strides[1] != 1) return MakeStridedCopy(copy);
  const int64_t bytes = copy.dims[1] * copy.element_bytes;
  std::vector<RowLaunch> launches;
  FT_RETURN_IF_ERROR(
      AddCopies({{static_cast<const char*>(copy.from), static_cast<char*>(copy.to), 0, bytes, bytes}},
                copy.dims[0], launches));
  return MakeCopies(std::move(launches));
}

template <bool kSplit>
KernelOr MakeParts(const KernelContext& context) {
  const std::vector<Tensor>& wholes = kSplit ? context.operands.in : context.operands.out;
  const std::vector<Tensor>& tensors = kSplit ? context.operands.out : context.operands.in;
  if (wholes.size() != 1) return absl::InvalidArgumentError("takes one whole tensor and its parts");
  const Tensor& whole = wholes[0];
  FT_ASSIGN_OR_RETURN(const JoinedParts joined, CheckParts(whole, tensors, context.attributes));
  std::vector<Part> parts;
  for (const auto& [in_part, offset, bytes] : joined.parts) {
    char* in_whole = whole.as<char>() + offset;
    parts.push_back(kSplit ? Part{in_whole, in_part, joined.row_bytes, bytes, bytes}
                           : Part{in_part, in_whole, bytes, joined.row_bytes, bytes});
  }
  std::vector<RowLaunch> launches;
  FT_RETURN_IF_ERROR(AddCopies(parts, joined.rows, launches));
  return MakeCopies(std::move(launches));
}

// The bytes of an element with this value, repeated.
uint64_t Pattern(DType dtype, double value) {
  const auto repeated = [](auto element) {
    uint64_t pattern = 0;
    for (size_t at = 0; at < sizeof(pattern); at += sizeof(element)) {
      std::memcpy(reinterpret_cast<char*>(&pattern) + at, &element, sizeof(element));
    }
    return pattern;
  };
  switch (dtype) {
    case DType::kF32:
      return repeated(static_cast<float>(value));
    case DType::kBF16:
      return repeated(RoundToBF16(static_cast<float>(value)));
    case DType::kF16:
      return repeated(RoundToF16(static_cast<float>(value)));
    case DType::kF64:
      return repeated(value);
    case DType::kI32:
      return repeated(static_cast<int32_t>(value));
    case DType::kI64:
      return repeated(static_cast<int64_t>(value));
    case DType::kU8:
      return repeated(static_cast<uint8_t>(value));
  }
  return 0;
}

KernelOr MakeFill(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 0, 1));
  const Tensor& r = context.out(0);
  FT_RETURN_IF_ERROR(CheckPresent(r, "result", r.dtype));
  FT_ASSIGN_OR_RETURN(const double value, FillValue(context.attributes, r.dtype));
  FillArgs args = {r.data, Pattern(r.dtype, value), Bytes(r), 1, {}};
  args.ranges[0] = {0, Bytes(r)};
  return MakeKernel([args](StreamHandle stream) { return Fill(args, stream); });
}

KernelOr MakeIota(const KernelContext& context) {
  FT_RETURN_IF_ERROR(CheckCounts(context.operands, 0, 1));
  const Tensor& r = context.out(0);
  FT_RETURN_IF_ERROR(CheckPresent(r, "result", DType::kI32));
  return MakeKernel([to = r.as<int32_t>(), elements = r.elements()](StreamHandle stream) {
    return Iota(to, elements, stream);
  });
}

KernelOr MakeZeroPadding(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const std::vector<ByteRange> padding, ReadPadding(context.operands));
  std::vector<FillArgs> launches;
  for (size_t i = 0; i < padding.size(); ++i) {
    if (i % kMaxRanges == 0) launches.push_back({context.out(0).data, 0, 0, 0, {}});
    FillArgs& args = launches.back();
    args.ranges[args.count++] = padding[i];
    args.longest = std::max(args.longest, padding[i].end - padding[i].begin);
  }
  return MakeKernel([launches = std::move(launches)](StreamHandle stream) {
    for (const FillArgs& args : launches) {
      if (const int error = Fill(args, stream); error != 0) return error;
    }
    return 0;
  });
}

}  // namespace

void RegisterMovement(KernelTable& table) {
  table.Add("copy", &MakeCopy);
  table.Add("reshape", &MakeCopy);
  table.Add("broadcast", &MakeBroadcast);
  table.Add("split", &MakeParts<true>);
  table.Add("concat", &MakeParts<false>);
  table.Add("fill", &MakeFill);
  table.Add("iota", &MakeIota);
  table.Add("zero_padding", &MakeZeroPadding);
}

}  // namespace ft::cuda
