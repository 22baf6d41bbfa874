#include "runtime/kernels/embedding/cpu_loops.h"

#include "runtime/backends/cpu/simd/f16_pieces.h"

namespace ft::cpu::FT_ISA {
namespace {

template <typename T>
void Embedding(const EmbeddingArgs& args, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const int64_t id = args.ids[row];
    T* result = static_cast<T*>(args.result) + row * args.columns;
    if (id < 0 || id >= args.vocabulary) {
      for (int64_t i = 0; i < args.columns; ++i) Store(__builtin_nanf(""), result[i]);
      continue;
    }
    const T* source = static_cast<const T*>(args.table) + id * args.columns;
#pragma omp simd
    for (int64_t i = 0; i < args.columns; ++i) result[i] = source[i];
  }
}

template <typename T>
void AddInto(const void* x, int64_t begin, int64_t n, float* sum) {
  const T* from = static_cast<const T*>(x) + begin;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) sum[i] += Load(from[i]);
}

template <>
void AddInto<Float16>(const void* x, int64_t begin, int64_t n, float* sum) {
  Piece piece;
  for (int64_t i = 0, m; i < n; i += m) {
    m = PieceLength(i, n);
    AddInto<float>(piece.Read(x, begin + i, m), 0, m, sum + i);
  }
}

template <typename T>
void EmbeddingGrad(const EmbeddingGradArgs& args, int64_t begin, int64_t end) {
  for (int64_t row = 0; row < args.rows; ++row) {
    const int64_t id = args.ids[row];
    if (id < 0 || id >= args.vocabulary) continue;
    AddInto<T>(args.dy, row * args.columns + begin, end - begin, args.dtable + id * args.columns + begin);
  }
}

}  // namespace

extern const EmbeddingLoops kEmbedding;
const EmbeddingLoops kEmbedding = {FT_EVERY_FLOAT(Embedding), FT_EVERY_FLOAT(EmbeddingGrad),
                                   FT_EVERY_FLOAT(AddInto)};

}  // namespace ft::cpu::FT_ISA
