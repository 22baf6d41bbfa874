#include "compiler/tune/extrapolate.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

#include "runtime/cost/instruction_cost.h"
#include "runtime/plan/all_to_all.h"

namespace ft::compiler {

namespace {

/// `less`, and `further` times what `more` has more.
TuneTrial extrapolated(const TuneTrial &less, const TuneTrial &more, uint64_t further) {
  const auto line = [&](double a, double b) {
    return std::max(0.0, a + static_cast<double>(further) * (b - a));
  };
  const auto bytes = [&](uint64_t a, uint64_t b) {
    return static_cast<uint64_t>(line(static_cast<double>(a), static_cast<double>(b)));
  };
  return {.mesh = less.mesh,
          .seconds = line(less.seconds, more.seconds),
          .exposedSeconds = line(less.exposedSeconds, more.exposedSeconds),
          .kernelSeconds = line(less.kernelSeconds, more.kernelSeconds),
          .modelFlops = line(less.modelFlops, more.modelFlops),
          .tokens = less.tokens,
          .arenaBytes = bytes(less.arenaBytes, more.arenaBytes),
          .deviceBytes = bytes(less.deviceBytes, more.deviceBytes),
          .hostBytes = bytes(less.hostBytes, more.hostBytes)};
}

/// Of one rank, the first; with `further` times as many more as `more` has more than `less`.
double secondsOf(llvm::ArrayRef<Turns> less, llvm::ArrayRef<Turns> more, uint64_t further, const Mesh &mesh) {
  double seconds = 0;
  for (const auto &[a, b] : llvm::zip_equal(less, more))
    seconds += a.seconds * static_cast<double>(llvm::divideCeil(a.count + further * (b.count - a.count),
                                                                static_cast<uint64_t>(mesh.shard)));
  return seconds;
}

} // namespace

std::vector<Turns> turnsOf(const proto::Plan &plan, const Mesh &mesh, const Target &target) {
  std::vector<Turns> turns;
  bool first = false; // of a group, whose first thing every mesh has
  for (const proto::Program &program : plan.programs())
    for (const proto::Instruction &instruction : program.instructions()) {
      const proto::SizeExpr *share = ShareOf(plan, instruction);
      if (instruction.opcode() != proto::KERNEL || share == nullptr)
        continue;
      if (share->index() == 0 && (!first || turns.back().count != share->count()))
        turns.push_back({share->count(), 0});
      first = share->index() == 0;
      if (first)
        turns.back().seconds += InstructionSeconds(plan, mesh, instruction, target);
    }
  return turns;
}

TuneTrial extrapolated(Sample less, Sample more, int64_t kept, int64_t blocks) {
  const auto further = static_cast<uint64_t>(blocks - kept);
  double inTurn = 0;
  if (less.turns.size() == more.turns.size()) {
    const Mesh &mesh = less.trial.mesh;
    less.trial.seconds -= secondsOf(less.turns, less.turns, 0, mesh);
    more.trial.seconds -= secondsOf(more.turns, more.turns, 0, mesh);
    inTurn = secondsOf(less.turns, more.turns, further, mesh);
  }
  TuneTrial all = extrapolated(less.trial, more.trial, further);
  all.seconds += inTurn;
  return all;
}

} // namespace ft::compiler
