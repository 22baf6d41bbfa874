#include "compiler/pipeline/op_numbers.h"

#include "dialects/ft/dialect.h"
#include "dialects/ftx/views.h"

#include <set>

namespace ft::compiler {

using namespace mlir;
using namespace mlir::ftx;

void numberOps(func::FuncOp function) {
  Builder builder(function.getContext());
  for (auto [number, op] : llvm::enumerate(function.getBody().front()))
    if (!isa<mlir::ft::PackOp>(op))
      op.setLoc(FusedLoc::get({op.getLoc()}, builder.getI64IntegerAttr(number), op.getContext()));
}

static bool preparesGather(KernelOp kernel) {
  return llvm::any_of(kernel.getOuts(), [](Value out) {
    return out.getDefiningOp<BufferOp>().getMemoryClass() == MemoryClass::gathered;
  });
}

static std::vector<unsigned> numbersIn(Location location) {
  std::set<unsigned> numbers;
  location->walk([&](Location part) {
    auto fused = dyn_cast<FusedLoc>(part);
    if (auto number = fused ? dyn_cast_or_null<IntegerAttr>(fused.getMetadata()) : IntegerAttr())
      numbers.insert(number.getInt());
    return WalkResult::advance();
  });
  return {numbers.begin(), numbers.end()};
}

std::vector<std::vector<unsigned>> numbersOfInstructions(ProgramOp program) {
  std::vector<std::vector<unsigned>> numbers;
  for (Operation &op : program.getBody().front()) {
    if (!isInstruction(&op))
      continue;
    auto kernel = dyn_cast<KernelOp>(op);
    bool isOfOps = kernel && kernel.getLayer() && !preparesGather(kernel);
    numbers.push_back(isOfOps ? numbersIn(op.getLoc()) : std::vector<unsigned>());
  }
  return numbers;
}

} // namespace ft::compiler
