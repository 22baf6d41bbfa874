// embedding and embedding_grad.
#include <algorithm>
#include <vector>

#include "fmt/format.h"
#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/kernels/accumulate/cpu_loops.h"
#include "runtime/kernels/cast/cpu_loops.h"
#include "runtime/kernels/embedding/cpu_loops.h"
#include "runtime/kernels/embedding/operands.h"

namespace ft::cpu {
namespace {

KernelOr MakeEmbedding(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const EmbeddingOperands read, ReadEmbedding(context.operands));
  const Tensor &ids = read.ids, &table = read.table;
  const EmbeddingArgs args = {ids.as<int32_t>(), table.data, read.result.data, table.rows(), table.last()};
  return MakeRowwise(context.loops.embedding.embedding[FloatIndex(table.dtype)], args, ids.elements(),
                     table.last(), context.num_threads);
}

constexpr int64_t kColumnGrain = 128;

// Parallel over columns, so that rows are added in order of position whatever the number of threads.
KernelOr MakeWideEmbeddingGrad(const KernelContext& context, const EmbeddingOperands& read) {
  const Tensor &ids = read.ids, &dy = read.result, &r = read.table;
  const EmbeddingGradArgs args = {ids.as<int32_t>(), dy.data,  r.as<float>(),
                                  ids.elements(),    r.rows(), r.last()};
  return MakeKernel([=, fill = context.loops.convert.fill,
                     add_rows = context.loops.embedding.embedding_grad[FloatIndex(dy.dtype)],
                     clear = read.clear, elements = r.elements(), num_threads = context.num_threads] {
    if (clear) {
      ParallelRanges(elements, kGrain, ThreadsFor(num_threads, elements),
                     [&](int64_t begin, int64_t end) { fill(args.dtable, 0.0f, begin, end); });
    }
    ParallelRanges(args.columns, kColumnGrain, ThreadsFor(num_threads, args.rows * args.columns),
                   [&](int64_t begin, int64_t end) { add_rows(args, begin, end); });
  });
}

// Positions that are sorted by their ids: 2 GiB of entries, which have 32 bits for a position.
constexpr int64_t kMostSorted = int64_t{1} << 28;

// A 16-bit table: the positions of an id have to meet in f32 before they are rounded, so positions are sorted
// by id.
class NarrowEmbeddingGrad final : public CpuKernel {
 public:
  NarrowEmbeddingGrad(const KernelContext& context, const EmbeddingOperands& read)
      : loops_(context.loops),
        ids_(read.ids),
        dy_(read.result),
        table_(read.table),
        clear_(read.clear),
        num_threads_(context.num_threads),
        order_(static_cast<size_t>(ids_.elements())) {}

  void Run() override {
    if (clear_) Clear();
    Sort();
    const int64_t columns = table_.last(), rows = static_cast<int64_t>(order_.size());
    // By columns, as for f32: all threads have the same work whichever ids there are.
    ParallelRanges(columns, kColumnGrain, ThreadsFor(num_threads_, rows * columns),
                   [&](int64_t begin, int64_t end) { AddColumns(begin, end - begin); });
  }

 private:
  // An id and a position, in one number that sorts by both.
  static uint64_t Entry(int64_t id, int64_t position) {
    return static_cast<uint64_t>(id) << 32 | static_cast<uint64_t>(position);
  }

  void Clear() {
    const int64_t bytes = table_.elements() * 2;
    ParallelRanges(bytes, kGrain, ThreadsFor(num_threads_, table_.elements()),
                   [&](int64_t begin, int64_t end) {
                     std::fill(table_.as<char>() + begin, table_.as<char>() + end, char{0});
                   });
  }

  void Sort() {
    const int32_t* ids = ids_.as<int32_t>();
    for (size_t i = 0; i < order_.size(); ++i) {
      order_[i] = Entry(static_cast<uint32_t>(ids[i]), static_cast<int64_t>(i));  // ids below 0 come last
    }
    std::sort(order_.begin(), order_.end());
  }

  void AddColumns(int64_t begin, int64_t n) const {
    const int64_t columns = table_.last();
    const auto add_into = loops_.accumulate.add_into[FloatIndex(dy_.dtype)];
    float sum[kColumnGrain];
    for (size_t first = 0; first < order_.size();) {
      const int64_t id = static_cast<int64_t>(order_[first] >> 32);
      if (id >= table_.rows()) return;
      loops_.convert.to_float[FloatIndex(table_.dtype)](table_.data, id * columns + begin, n, sum);
      size_t i = first;
      for (; i < order_.size() && static_cast<int64_t>(order_[i] >> 32) == id; ++i) {
        add_into(dy_.data, static_cast<int64_t>(order_[i] & 0xFFFFFFFFu) * columns + begin, n, sum);
      }
      loops_.convert.from_float[FloatIndex(table_.dtype)](sum, table_.data, id * columns + begin, n);
      first = i;
    }
  }

  const Loops& loops_;
  Tensor ids_, dy_, table_;
  bool clear_;
  int num_threads_;
  std::vector<uint64_t> order_;
};

KernelOr MakeEmbeddingGrad(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const EmbeddingOperands read, ReadEmbeddingGrad(context.operands));
  if (read.table.dtype == DType::kF32) return MakeWideEmbeddingGrad(context, read);
  if (read.ids.elements() > kMostSorted)
    return absl::InvalidArgumentError(
        fmt::format("takes at most {} ids, got {}", kMostSorted, read.ids.elements()));
  return std::make_unique<NarrowEmbeddingGrad>(context, read);
}

}  // namespace

void RegisterEmbedding(KernelRegistry& registry, Isa isa) {
  Add<MakeEmbedding>(registry, "embedding", isa);
  Add<MakeEmbeddingGrad>(registry, "embedding_grad", isa);
}

}  // namespace ft::cpu
