#include "runtime/kernels/embedding/cpu_loops.h"

#include "runtime/backends/cpu/simd/add_into.h"

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
void EmbeddingGrad(const EmbeddingGradArgs& args, int64_t begin, int64_t end) {
  for (int64_t row = 0; row < args.rows; ++row) {
    const int64_t id = args.ids[row];
    if (id < 0 || id >= args.vocabulary) continue;
    AddInto<T>(args.dy, row * args.columns + begin, end - begin, args.dtable + id * args.columns + begin);
  }
}

}  // namespace

extern const EmbeddingLoops kEmbedding;
const EmbeddingLoops kEmbedding = {FT_EVERY_FLOAT(Embedding), FT_EVERY_FLOAT(EmbeddingGrad)};

}  // namespace ft::cpu::FT_ISA
