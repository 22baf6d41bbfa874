// Attention and its gradient by tiles in shared memory, for any head size up to 256: what is
// computed where no library's kernel is at hand. Arithmetic is f32 whatever the elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/backends/cuda/routines/launch.h"
#include "runtime/base/dtype.h"

namespace ft::cuda {

// Head h uses kv head h / (heads / kv_heads). batch * heads * positions, and 64 * q_stride, are below 2^31.
struct AttentionShape {
  int batch, positions, heads, kv_heads, head_size;
  int q_stride, kv_stride;  // elements between positions of q and dq, and of k, v, dk and dv
  // A query sees the keys from `before` - 1 positions before it to `after` - 1 behind it; both are 1 to
  // `positions`.
  int before, after;
  float scale;    // s: of the products of q and k
  float softcap;  // c: s becomes c tanh(s / c); 0: it stays s
  // Times (key's position - query's) a slope is added to s, whose sequence (see ft.attention) is of so many
  // heads, a power of two; 0: nothing is.
  int alibi_heads;
  DType dtype;  // of all but lse and row_sums
};

struct AttentionArgs {
  const void* q;  // [batch, positions, heads * head_size]
  const void* k;  // [batch, positions, kv_heads * head_size]
  const void* v;
  void* out;   // [batch, positions, heads * head_size]
  float* lse;  // [batch, heads, positions]: log of the sum of exponentials of the scaled scores
  AttentionShape shape;
};

struct AttentionGradArgs {
  const void *q, *k, *v, *out, *dout;
  const float* lse;
  float* row_sums;  // [batch, heads, positions], scratch: dout . out
  void *dq, *dk, *dv;
  AttentionShape shape;
};

int Attention(const AttentionArgs& args, StreamHandle stream);
int AttentionGrad(const AttentionGradArgs& args, StreamHandle stream);

// Shared memory that a block of either wants.
size_t AttentionSharedBytes(int head_size);
size_t AttentionGradSharedBytes(int head_size);

}  // namespace ft::cuda
