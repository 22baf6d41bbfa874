// update: the step of an optimizer, by the code of its body where the plan has some for this machine, else by
// the walker. update_scalars: the numbers that it reads.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/backends/cpu/kernel_base.h"
#include "runtime/backends/cpu/mapped_code.h"
#include "runtime/backends/cpu/register.h"
#include "runtime/base/step_scalar_formulas.h"
#include "runtime/kernels/cluster/cpu_walker.h"
#include "runtime/kernels/random/cpu_loops.h"
#include "runtime/kernels/update/operands.h"

namespace ft::cpu {
namespace {

constexpr int64_t kRoundedChunk = 2048;  // elements in f32 that are in the cache when they are rounded
using Addresses = std::array<void*, kMaxClusterInputs + kMaxClusterResults>;

// The same runs in pieces of at most `grain` elements.
std::vector<UpdateRun> Cut(const std::vector<UpdateRun>& runs, int64_t grain) {
  std::vector<UpdateRun> pieces;
  for (const UpdateRun& run : runs) {
    for (int64_t at = run.begin; at < run.end; at += grain)
      pieces.push_back(
          {at, std::min(run.end, at + grain), run.decays, run.first + at - run.begin, run.stream});
  }
  return pieces;
}

// rows(decays, begin, end) for all pieces.
template <typename Rows>
KernelOr MakeNearest(const UpdateOperands& operands, int num_threads, Rows rows) {
  const int threads = ThreadsFor(num_threads, 4 * operands.elements);
  return MakeKernel([=, pieces = Cut(operands.runs, kGrain), columns = operands.body.columns] {
    ParallelFor(static_cast<int64_t>(pieces.size()), threads, [&](int64_t i) {
      rows(pieces[i].decays, pieces[i].begin / columns, pieces[i].end / columns);
    });
  });
}

// Chunks are computed in f32 and rounded: run(addresses, rows).
template <typename Run>
KernelOr MakeStochastic(const UpdateOperands& operands, const KernelContext& context, int threads, Run run) {
  const auto round = context.loops.random.round_bf16;
  return MakeKernel([=, chunks = Cut(operands.runs, kRoundedChunk)] {
    ParallelFor(static_cast<int64_t>(chunks.size()), threads, [&](int64_t i) {
      const UpdateRun& chunk = chunks[i];
      alignas(64) std::array<float, kRoundedChunk> values;
      Addresses addresses;
      operands.SetAddresses(chunk.begin, chunk.decays, addresses.data());
      addresses[operands.body.inputs.size()] = values.data();
      const int64_t n = chunk.end - chunk.begin, columns = operands.body.columns;
      run(addresses, (n + columns - 1) / columns);
      round({static_cast<uint64_t>(operands.rng[0]), chunk.stream, static_cast<uint32_t>(*operands.step)},
            values.data(), operands.out[0].as<uint16_t>() + chunk.begin, chunk.first, n);
    });
  });
}

KernelOr MakeWalked(const UpdateOperands& operands, const KernelContext& context) {
  if (operands.rng != nullptr) {
    auto walker = std::make_shared<ClusterWalker>(
        ClusterOperands{operands.BodyOver(kRoundedChunk), operands.Addresses(0, false)}, context.loops);
    return MakeStochastic(operands, context, /*threads=*/1,
                          [walker](const Addresses& addresses, int64_t rows) {
                            walker->MoveTo(addresses.data());
                            walker->Rows(0, rows);
                          });
  }
  std::array<std::shared_ptr<const ClusterWalker>, 2> walkers;
  for (const bool decays : {false, true})
    walkers[decays] = std::make_shared<const ClusterWalker>(
        ClusterOperands{operands.BodyOver(operands.elements), operands.Addresses(0, decays)}, context.loops);
  return MakeNearest(operands, context.num_threads, [walkers](bool decays, int64_t begin, int64_t end) {
    walkers[decays]->Rows(begin, end);
  });
}

KernelOr MakeUpdate(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const UpdateOperands operands,
                      ReadUpdateOperands(context.operands, context.attributes));
  FT_ASSIGN_OR_RETURN(const auto code, CodeOf(*context.attributes.cluster(), context.isa));
  if (code == nullptr) return MakeWalked(operands, context);
  if (operands.rng != nullptr) {
    const int threads = ThreadsFor(context.num_threads, 4 * operands.elements);
    return MakeStochastic(operands, context, threads, [code](const Addresses& addresses, int64_t rows) {
      code->kernel()(addresses.data(), 0, rows);
    });
  }
  const std::array<std::vector<void*>, 2> addresses = {operands.Addresses(0, false),
                                                       operands.Addresses(0, true)};
  return MakeNearest(operands, context.num_threads,
                     [code, addresses](bool decays, int64_t begin, int64_t end) {
                       code->kernel()(addresses[decays].data(), begin, end);
                     });
}

KernelOr MakeUpdateScalars(const KernelContext& context) {
  FT_ASSIGN_OR_RETURN(const ScalarOperands o, ReadScalarOperands(context.operands, context.attributes));
  return MakeKernel([o] {
    float* result = o.scalars;
    const StepValues values{.clip = *o.coefficient,
                            .lr = *o.lr,
                            .step = *o.step,
                            .inverse_ranks = o.inverse_ranks == nullptr ? 1.0f : *o.inverse_ranks};
    for (const bool decays : {false, true})
      for (int i = 0; i < o.formulas.count; ++i)
        *result++ = static_cast<float>(StepScalarAt(o.formulas, i, decays, values));
  });
}

}  // namespace

void RegisterUpdate(KernelRegistry& registry, Isa isa) {
  Add<MakeUpdate>(registry, "update", isa);
  Add<MakeUpdateScalars>(registry, "update_scalars", isa);
}

}  // namespace ft::cpu
