// gather_elements, scatter_add_elements, cumsum, argsort, histogram.
#include <cstring>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/kernels/index/cpu_elements.h"
#include "runtime/kernels/index/operands.h"

namespace ft::cpu {
namespace {

template <typename T>
void GatherRows(const ElementsByIds& args, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const T* x = static_cast<const T*>(args.x) + row * args.other_columns;
    const int32_t* ids = args.ids + row * args.ids_columns;
    T* result = static_cast<T*>(args.result) + row * args.ids_columns;
    for (int64_t k = 0; k < args.ids_columns; ++k)
      result[k] = ids[k] >= 0 && ids[k] < args.other_columns ? x[ids[k]] : T{};
  }
}

KernelOr MakeGatherElements(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const ElementsByIds args, CheckGatherElements(context.operands));
  void (*gather)(const ElementsByIds&, int64_t, int64_t) = nullptr;
  switch (SizeOf(args.dtype)) {
    case 1:
      gather = &GatherRows<uint8_t>;
      break;
    case 2:
      gather = &GatherRows<uint16_t>;
      break;
    case 4:
      gather = &GatherRows<uint32_t>;
      break;
    default:
      gather = &GatherRows<uint64_t>;
  }
  return MakeRowwise(gather, args, args.rows, args.ids_columns, context.num_threads);
}

// Where an id is in its row for the first time, all of its elements are summed. Quadratic in the ids of a
// row, which are few.
template <typename T>
void ScatterRow(const ElementsByIds& args, int64_t row) {
  const int32_t* ids = args.ids + row * args.ids_columns;
  for (int64_t k = 0; k < args.ids_columns; ++k) {
    const int32_t id = ids[k];
    if (id < 0 || id >= args.other_columns || std::find(ids, ids + k, id) != ids + k) continue;
    double sum = 0;
    for (int64_t i = k; i < args.ids_columns; ++i) {
      if (ids[i] == id) sum += T::Get(args.x, row * args.ids_columns + i);
    }
    PutElement(args.result, args.result_dtype, row * args.other_columns + id, sum);
  }
}

KernelOr MakeScatterAddElements(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const ElementsByIds args, CheckScatterAddElements(context.operands));
  const int64_t row_bytes = args.other_columns * static_cast<int64_t>(SizeOf(args.result_dtype));
  return WithElements(args.dtype, [&]<typename T>() -> KernelOr {
    if constexpr (std::is_same_v<decltype(T::Get(nullptr, 0)), double>) {
      return MakeRowwise(
          [=](int64_t begin, int64_t end) {
            std::memset(static_cast<char*>(args.result) + begin * row_bytes, 0, (end - begin) * row_bytes);
            for (int64_t row = begin; row < end; ++row) ScatterRow<T>(args, row);
          },
          args.rows, args.other_columns, context.num_threads);
    } else {
      return absl::InvalidArgumentError("x must be of a float type");
    }
  });
}

KernelOr MakeCumsum(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const RowScan args, CheckCumsum(context.operands, context.attributes));
  return WithElements(args.dtype, [&]<typename T>() {
    return MakeRowwise(
        [=](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            decltype(T::Get(nullptr, 0)) sum = 0;
            for (int64_t i = 0; i < args.columns; ++i) {
              const int64_t at = row * args.columns + (args.backwards ? args.columns - 1 - i : i);
              sum = Sum(sum, T::Get(args.x, at));
              PutElement(args.result, args.result_dtype, at, sum);
            }
          }
        },
        args.rows, args.columns, context.num_threads);
  });
}

// NaN is above everything; equal elements are in the order they have.
template <typename T>
bool Below(T a, T b) {
  if constexpr (std::is_same_v<T, double>) {
    if (std::isnan(a) || std::isnan(b)) return !std::isnan(a);
  }
  return a < b;
}

// The place of each element in the order, by comparison with all others of its row.
template <typename T>
void SortRow(const RowScan& args, int64_t row) {
  const int64_t base = row * args.columns;
  int32_t* result = static_cast<int32_t*>(args.result) + row * args.result_columns;
  for (int64_t i = 0; i < args.columns; ++i) {
    const auto own = T::Get(args.x, base + i);
    int64_t place = 0;
    for (int64_t j = 0; j < args.columns; ++j) {
      const auto other = T::Get(args.x, base + j);
      const bool before = args.backwards ? Below(own, other) : Below(other, own);
      const bool after = args.backwards ? Below(other, own) : Below(own, other);
      place += before || (!after && j < i) ? 1 : 0;
    }
    if (place < args.result_columns) result[place] = static_cast<int32_t>(i);
  }
}

KernelOr MakeArgsort(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const RowScan args, CheckArgsort(context.operands, context.attributes));
  return WithElements(args.dtype, [&]<typename T>() {
    return MakeRowwise(
        [=](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) SortRow<T>(args, row);
        },
        args.rows, args.columns, context.num_threads);
  });
}

KernelOr MakeHistogram(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const Histogram args, CheckHistogram(context.operands));
  return MakeKernel([=] {
    std::fill_n(args.result, args.counts, 0);
    for (int64_t i = 0; i < args.elements; ++i) {
      if (args.ids[i] >= 0 && args.ids[i] < args.counts) ++args.result[args.ids[i]];
    }
  });
}

}  // namespace

void RegisterIndex(KernelRegistry& registry, Isa isa) {
  Add<MakeGatherElements>(registry, "gather_elements", isa);
  Add<MakeScatterAddElements>(registry, "scatter_add_elements", isa);
  Add<MakeCumsum>(registry, "cumsum", isa);
  Add<MakeArgsort>(registry, "argsort", isa);
  Add<MakeHistogram>(registry, "histogram", isa);
}

}  // namespace ft::cpu
