// dot, a product for each matrix of a batch; grouped_dot and grouped_dot_grad, one for each group of rows.
#include <cstring>

#include "runtime/backends/cpu/gemm.h"
#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/kernels/dot/operands.h"
#include "runtime/kernels/index/operands.h"

namespace ft::cpu {
namespace {

KernelOr MakeDot(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const BatchedProduct product,
                      CheckBatchedProduct(context.operands, context.attributes));
  const Tensor &a = context.in(0), &b = context.in(1), &r = context.out(0);
  const GemmShape shape = {.m = product.m,
                           .n = product.n,
                           .k = product.k,
                           .transpose_a = product.transpose_a,
                           .transpose_b = product.transpose_b};
  const auto step = [&](const Tensor& tensor) {
    return tensor.elements() / product.batch * static_cast<int64_t>(SizeOf(tensor.dtype));
  };
  return MakeKernel([=, &loops = context.loops, threads = context.num_threads, a_step = step(a),
                     b_step = step(b), r_step = step(r)] {
    for (int64_t i = 0; i < product.batch; ++i) {
      Gemm(loops, shape, {a.as<char>() + i * a_step, a.dtype}, {b.as<char>() + i * b_step, b.dtype}, nullptr,
           {r.as<char>() + i * r_step, r.dtype}, threads);
    }
  });
}

// Row `row` of a matrix, or matrix `row` of several, of `columns` elements each.
char* RowOf(const Tensor& tensor, int64_t row, int64_t columns) {
  return tensor.as<char>() + row * columns * static_cast<int64_t>(SizeOf(tensor.dtype));
}

KernelOr MakeGroupedDot(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const GroupedProduct product, CheckGroupedDot(context.operands, context.attributes));
  return MakeKernel([=, &loops = context.loops, threads = context.num_threads, x = context.in(0),
                     w = context.in(1), r = context.out(0)] {
    int64_t begin = 0;
    for (int64_t g = 0; g < product.groups; ++g) {
      const int64_t end = product.End(begin, g);
      const GemmShape shape = {
          .m = end - begin, .n = product.n, .k = product.k, .transpose_b = product.transpose_b};
      if (end > begin)
        Gemm(loops, shape, {RowOf(x, begin, product.k), x.dtype},
             {RowOf(w, g, product.k * product.n), w.dtype}, nullptr, {RowOf(r, begin, product.n), r.dtype},
             threads);
      begin = end;
    }
    std::memset(RowOf(r, begin, product.n), 0,
                RowOf(r, product.rows, product.n) - RowOf(r, begin, product.n));
  });
}

KernelOr MakeGroupedDotGrad(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const GroupedProduct product, CheckGroupedDotGrad(context.operands));
  return MakeKernel([=, &loops = context.loops, threads = context.num_threads, x = context.in(0),
                     dy = context.in(1), dw = context.out(0), accumulate = context.in(3).present()] {
    const int64_t matrix = product.k * product.n;
    int64_t begin = 0;
    for (int64_t g = 0; g < product.groups; ++g) {
      const int64_t end = product.End(begin, g);
      const GemmShape shape = {
          .m = product.k, .n = product.n, .k = end - begin, .transpose_a = true, .accumulate = accumulate};
      if (end > begin) {
        Gemm(loops, shape, {RowOf(x, begin, product.k), x.dtype}, {RowOf(dy, begin, product.n), dy.dtype},
             nullptr, {RowOf(dw, g, matrix), dw.dtype}, threads);
      } else if (!accumulate) {
        std::memset(RowOf(dw, g, matrix), 0, RowOf(dw, g + 1, matrix) - RowOf(dw, g, matrix));
      }
      begin = end;
    }
  });
}

}  // namespace

void RegisterDot(KernelRegistry& registry, Isa isa) {
  Add<MakeDot>(registry, "dot", isa);
  Add<MakeGroupedDot>(registry, "grouped_dot", isa);
  Add<MakeGroupedDotGrad>(registry, "grouped_dot_grad", isa);
}

}  // namespace ft::cpu
