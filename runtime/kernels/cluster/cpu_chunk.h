// Elements between tensors and chunks: arrays in which floats are f32, integers and truth values i64.
#pragma once

#include <cstdint>

#include "runtime/base/dtype.h"
#include "runtime/kernels/cast/cpu_loops.h"

namespace ft::cpu {

// A chunk is an array of float for floats, of int64_t for everything else.
struct ChunkMover {
  const ConvertLoops& convert;

  // n elements from `begin` on, to chunk[at ...].
  void Read(const void* from, DType dtype, int64_t begin, int64_t n, void* chunk, int64_t at = 0) const;
  // n elements of the chunk, each rounded to `dtype`, to those from `begin` on.
  void Write(const void* chunk, int64_t n, void* to, DType dtype, int64_t begin) const;
};

// All n elements of the chunk: that of a tensor's element that is there once.
void Spread(DType dtype, int64_t n, void* chunk);

// n elements of a chunk of `from` as those of one of `to`, unrounded. From floats towards zero, with the
// type's ends for what is beyond them and 0 for NaN. Two chunks.
void ConvertChunk(const void* chunk, DType from, void* converted, DType to, int64_t n);

}  // namespace ft::cpu
