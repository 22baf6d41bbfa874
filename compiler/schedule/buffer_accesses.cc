#include "compiler/schedule/buffer_accesses.h"

#include <algorithm>

namespace ft::compiler {

using namespace mlir;
using namespace mlir::ftx;

InstructionOrder::InstructionOrder(ProgramOp program) {
  for (Operation &op : program.getBody().front()) {
    numbers[&op] = instructions.size();
    if (isInstruction(&op))
      instructions.push_back(&op);
  }
}

/// What an op touches where it stands: a wait completes what its transfer does.
static Operation *accessorOf(Operation *op) {
  auto wait = dyn_cast<WaitOp>(op);
  return wait ? wait.getToken().getDefiningOp() : op;
}

BufferAccesses::BufferAccesses(const InstructionOrder &order) {
  auto append = [](auto &numbers, size_t number) {
    if (numbers.empty() || numbers.back() != number)
      numbers.push_back(number);
  };
  for (size_t number = 0; number < order.size(); ++number)
    forEachAccess(accessorOf(order[number]), [&](Value buffer, bool writes) {
      Touched &touched = buffers[buffer];
      append(touched.accesses, number);
      if (writes)
        append(touched.writes, number);
    });
}

const llvm::SmallVectorImpl<size_t> &BufferAccesses::inConflictWith(Value buffer, bool writes) const {
  static const Touched nothing;
  auto it = buffers.find(buffer);
  const Touched &touched = it == buffers.end() ? nothing : it->second;
  return writes ? static_cast<const llvm::SmallVectorImpl<size_t> &>(touched.accesses) : touched.writes;
}

std::optional<size_t> BufferAccesses::lastConflict(ArrayRef<Operation *> ops, size_t end) const {
  std::optional<size_t> last;
  for (Operation *op : ops)
    forEachAccess(accessorOf(op), [&](Value buffer, bool writes) {
      const auto &numbers = inConflictWith(buffer, writes);
      auto it = std::lower_bound(numbers.begin(), numbers.end(), end);
      if (it != numbers.begin())
        last = std::max(last.value_or(0), *std::prev(it));
    });
  return last;
}

std::optional<size_t> BufferAccesses::firstConflict(Operation *op, size_t begin) const {
  std::optional<size_t> first;
  forEachAccess(accessorOf(op), [&](Value buffer, bool writes) {
    const auto &numbers = inConflictWith(buffer, writes);
    auto it = std::lower_bound(numbers.begin(), numbers.end(), begin);
    if (it != numbers.end())
      first = std::min(first.value_or(*it), *it);
  });
  return first;
}

} // namespace ft::compiler
