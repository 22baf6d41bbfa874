// Moving and filling bytes. All functions enqueue on `stream` and return a cudaError_t as int, 0 for success.
#pragma once

#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"
#include "runtime/kernels/movement/byte_range.h"

namespace ft::cuda {

// Columns [begin, end) of all rows, with their place in source and destination: row r of the part is at
// from + r * from_stride and goes to to + r * to_stride. In units, begin included in neither address.
struct RowPart {
  const void* from;
  void* to;
  int64_t from_stride;  // 0 repeats one row
  int64_t to_stride;
  uint32_t begin;
  uint32_t end;
};

inline constexpr int kMaxParts = 8;

// Parts follow each other: parts[0] begins at 0, the last one ends at `columns`, which is below 2^31. A unit
// is 1, 2, 4, 8 or 16 bytes, and divides all addresses. One launch for all parts.
struct RowCopyArgs {
  RowPart parts[kMaxParts];
  int count;
  int64_t rows;
  uint32_t columns;
};
int CopyRows(const RowCopyArgs& args, int unit_bytes, StreamHandle stream);

inline constexpr int kMaxRanges = 64;

// Bytes to[begin], to[begin + 1], ... of every range become those of `pattern`, lowest first, over and over.
// One launch for all ranges; `longest` is the length of the longest.
struct FillArgs {
  void* to;
  uint64_t pattern;
  int64_t longest;
  int count;
  ByteRange ranges[kMaxRanges];
};
int Fill(const FillArgs& args, StreamHandle stream);
int FillZeros(void* to, int64_t bytes, StreamHandle stream);

// to[i] = i.
int Iota(int32_t* to, int64_t elements, StreamHandle stream);

}  // namespace ft::cuda
