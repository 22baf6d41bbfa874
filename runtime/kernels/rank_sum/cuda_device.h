// The sum over ranks on the device, in the one order that this project has (runtime/collective/tree_sum.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/backends/cuda/device_code/launch.h"
#include "runtime/base/dtype.h"

namespace ft::cuda {

// A run of elements to be summed. The rank's own summand lies at `own`, that of rank r in slot r of the
// staging memory, `offset` bytes into it.
struct RankSumPiece {
  const void* own = nullptr;
  void* out = nullptr;  // may be `own`
  int64_t offset = 0;
  int64_t count = 0;  // elements
  DType dtype = DType::kF32;
};

inline constexpr int kMaxRankSumPieces = 32;
inline constexpr int kMaxRankSumRanks = 4095;

struct RankSumArgs {
  const void* slots = nullptr;  // ranks x slot_bytes; that of own_rank is not read
  int64_t slot_bytes = 0;       // a multiple of 16
  int ranks = 1;
  int own_rank = 0;
  int num_pieces = 0;
  RankSumPiece pieces[kMaxRankSumPieces];
};

// For each piece out[i] = tree(summands of ranks 0 .. ranks - 1 at i). f32, bf16 and f16 are accumulated in
// fp32 and rounded to nearest even once, f64 in fp64; i32 and i64 wrap. The bits are those of TreeSum, but
// for the payloads of NaNs. u8 is refused. Returns a cudaError_t as int, 0 for success.
int RankSum(const RankSumArgs& args, StreamHandle stream);

// RankSum as callers hold it that are built where there is no device code.
using RankSumLauncher = int (*)(const RankSumArgs& args, StreamHandle stream);

}  // namespace ft::cuda
