#include "compiler/pipeline/measured_plan.h"

#include "runtime/memplan/memplan.h"
#include "runtime/plan/describe.h"

#include <algorithm>

namespace ft::compiler {

using namespace mlir;

namespace {

// Bytes live at each instruction of a program in buffers that count, and in those that live through all
// programs.
std::vector<uint64_t> liveBytes(const MeasuredPlan &measured, int program,
                                llvm::function_ref<bool(const proto::Buffer &)> counts) {
  std::vector<LiveRange> ranges;
  for (auto [buffer, bytes] : llvm::zip_equal(measured.plan.buffers(), measured.bound.sizes)) {
    if (buffer.space() != proto::DEVICE)
      continue;
    if (buffer.persistent())
      ranges.push_back({bytes, 0, kEndOfProgram});
    else if (static_cast<int>(buffer.program()) == program && counts(buffer))
      ranges.push_back({bytes, buffer.first(), buffer.last()});
  }
  return LiveBytesAtEach(ranges, measured.plan.programs(program).instructions_size());
}

int numberOfStep(const proto::Plan &plan) {
  int number = 0;
  while (number < plan.programs_size() && plan.programs(number).name() != mlir::ft::kTrainStepFunction)
    ++number;
  return number;
}

} // namespace

llvm::DenseMap<Operation *, LiveAt> liveAtOps(const MeasuredPlan &measured, func::FuncOp train) {
  int program = numberOfStep(measured.plan);
  std::vector<uint64_t> all = liveBytes(measured, program, [](const proto::Buffer &) { return true; });
  std::vector<uint64_t> background = liveBytes(measured, program, [](const proto::Buffer &buffer) {
    return buffer.class_() != proto::ACTIVATIONS && buffer.class_() != proto::WORKSPACE;
  });
  auto ops = llvm::map_to_vector(train.getBody().front(), [](Operation &op) { return &op; });
  llvm::DenseMap<Operation *, LiveAt> result;
  size_t next = 0; // behind the last kernel of ops
  for (auto [i, numbers] : llvm::enumerate(measured.opsOfStep)) {
    if (numbers.empty())
      continue;
    LiveAt most;
    for (; next <= i; ++next)
      most = {std::max(most.all, all[next]), std::max(most.background, background[next])};
    bool isAlone =
        numbers.size() == 1 && measured.plan.programs(program).instructions(i).cluster_plus_one() == 0;
    for (unsigned number : numbers) {
      LiveAt &at = result[ops[number]];
      at.all = std::max(at.all, most.all);
      if (isAlone)
        at.background = std::max(at.background, most.background);
    }
  }
  return result;
}

std::string describePeak(const MeasuredPlan &measured) {
  const BoundArena &arena = measured.bound.device;
  std::vector<std::pair<uint64_t, int>> live;
  for (int i = 0; i < measured.plan.buffers_size(); ++i) {
    const proto::Buffer &buffer = measured.plan.buffers(i);
    bool now = !buffer.persistent() && buffer.space() == proto::DEVICE &&
               buffer.program() == arena.peak_program && buffer.first() <= arena.peak_instruction &&
               arena.peak_instruction <= buffer.last();
    if (now)
      live.push_back({measured.bound.sizes[i], -i});
  }
  std::sort(live.rbegin(), live.rend());
  std::string text = "its peak is at " +
                     InstructionPlace(measured.plan, static_cast<int>(arena.peak_program),
                                      static_cast<int>(arena.peak_instruction)) +
                     ", with " + std::to_string(arena.persistent_bytes) + " bytes that live through the step";
  for (size_t i = 0; i < std::min<size_t>(live.size(), 4); ++i)
    text += (i == 0 ? "; largest of the others: " : ", ") + BufferName(measured.plan, -live[i].second) + " " +
            std::to_string(live[i].first);
  return text;
}

} // namespace ft::compiler
