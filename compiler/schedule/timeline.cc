#include "compiler/schedule/timeline.h"

#include "runtime/cost/instruction_cost.h"
#include "runtime/memplan/memplan.h"
#include "runtime/plan/size_expr.h"

#include <algorithm>

namespace ft::compiler {

using namespace mlir;
using namespace mlir::ftx;

FailureOr<Costs> Costs::of(ModuleOp module, const Mesh &mesh, const Target &target) {
  Costs costs(module, mesh, target);
  if (failed(encodeTables(module, costs.numbers, costs.tables)))
    return failure();
  return costs;
}

uint64_t Costs::bytesOf(BufferOp buffer) const {
  const proto::Buffer &encoded = tables.buffers(static_cast<int>(numbers.buffer(buffer)));
  return RoundUp(BufferBytes(tables, encoded, mesh.shard, DeviceOf(target)));
}

FailureOr<std::vector<double>> Costs::secondsOf(ProgramOp program) const {
  proto::Program encoded;
  if (failed(encodeProgram(program, numbers, encoded)))
    return failure();
  std::vector<double> seconds;
  for (const proto::Instruction &instruction : encoded.instructions())
    seconds.push_back(InstructionSeconds(tables, mesh, instruction, target));
  return seconds;
}

Timeline::Timeline(const InstructionOrder &order, std::vector<double> all) : seconds(std::move(all)) {
  double now = 0;
  for (size_t number = 0; number < order.size(); ++number) {
    begins.push_back(now);
    if (isa<KernelOp>(order[number]))
      now += seconds[number];
  }
  begins.push_back(now);
}

std::optional<size_t> Timeline::lastBeginningBy(double latest) const {
  auto it = std::upper_bound(begins.begin(), std::prev(begins.end()), latest);
  return it == begins.begin() ? std::nullopt : std::optional<size_t>(it - begins.begin() - 1);
}

size_t Timeline::firstBeginningAt(double earliest) const {
  return std::lower_bound(begins.begin(), std::prev(begins.end()), earliest) - begins.begin();
}

RangeMax liveBytes(ProgramOp program, size_t instructions, const Costs &costs) {
  std::vector<LiveRange> live;
  for (BufferOp buffer : program->getParentOfType<ModuleOp>().getOps<BufferOp>())
    if (!buffer.getHost())
      live.push_back({costs.bytesOf(buffer), 0, kEndOfProgram});
  for (auto [value, range] : liveRangesOf(program))
    if (auto buffer = value.getDefiningOp<BufferOp>(); !buffer.getPersistent() && !buffer.getHost())
      live.push_back({costs.bytesOf(buffer), range.first, range.second});
  return RangeMax(llvm::to_vector_of<int64_t>(LiveBytesAtEach(live, instructions)));
}

} // namespace ft::compiler
