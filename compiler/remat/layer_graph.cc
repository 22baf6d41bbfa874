#include "compiler/remat/layer_graph.h"

#include "runtime/memplan/memplan.h"
#include "llvm/ADT/DenseMap.h"

namespace ft::compiler {

using namespace mlir;
using mlir::ft::GetOp;
using mlir::ft::KernelOpInterface;
using mlir::ft::PackOp;
using MlirValue = mlir::Value;

namespace {

uint64_t bytesOf(Type type, int floatBytes) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return 0;
  bool real = isa<FloatType>(tensor.getElementType()) && tensor.getRank() > 0;
  uint64_t each = real ? floatBytes : mlir::ft::elementBytes(tensor.getElementType());
  return RoundUp(tensor.getNumElements() * each);
}

class Cutter {
public:
  Cutter(const TrainingGraph &graph, unsigned begin, unsigned end, const LayerCosts &costs)
      : graph(graph), begin(begin), end(end), costs(costs) {
    collect();
  }

  LayerGraph cut() {
    for (Operation *op : forward)
      addOp(op, graph.runOf(op) - begin, /*inForward=*/true);
    result.forwardOps = result.ops.size();
    for (auto [op, run] : backward)
      addOp(op, run - begin, /*inForward=*/false);
    return std::move(result);
  }

private:
  void collect() {
    for (const LayerRun &run : graph.runs().slice(begin, end - begin))
      for (Operation *op : run.ops)
        if (isa<KernelOpInterface>(op))
          forward.push_back(op);
    backward = graph.backwardOf(begin, end);
    if (!backward.empty())
      firstBackward = backward.front().first;
    own.insert_range(forward);
    for (auto [op, run] : backward)
      own.insert(op);
  }

  // Written where it will stay, in a flat gradient or an output.
  bool hasPlace(MlirValue value) const {
    for (Operation *user : value.getUsers()) {
      if (isa<PackOp, func::ReturnOp>(user))
        return true;
      auto kernel = dyn_cast<KernelOpInterface>(user);
      for (unsigned i = 0; kernel && i < user->getNumResults(); ++i)
        if (kernel.getTiedOperand(i) == value && hasPlace(user->getResult(i)))
          return true;
    }
    return false;
  }

  int number(MlirValue value) {
    auto [it, isNew] = numbers.try_emplace(value, static_cast<int>(result.values.size()));
    if (!isNew)
      return it->second;
    LayerGraph::Value out;
    Operation *producer = value.getDefiningOp();
    bool ours = producer && own.contains(producer);
    out.fromBackward = !ours && producer && isBackward(producer);
    if ((ours || out.fromBackward) && !hasPlace(value))
      out.bytes = bytesOf(value.getType(), costs.floatBytes);
    for (Operation *user : value.getUsers()) {
      if (own.contains(user) || !(isForward(user) || isBackward(user)))
        continue;
      bool before = !firstBackward || user->isBeforeInBlock(firstBackward);
      (before ? out.savedForOthers : out.readAfter) |= isBackward(user);
    }
    result.values.push_back(out);
    return it->second;
  }

  int takenOver(KernelOpInterface kernel, unsigned index) {
    MlirValue operand = kernel.getTiedOperand(index);
    if (!operand)
      operand = kernel.getReusableOperand(index);
    if (!operand || bytesOf(operand.getType(), costs.floatBytes) !=
                        bytesOf(kernel->getResult(index).getType(), costs.floatBytes))
      return -1;
    return number(operand);
  }

  void addOp(Operation *op, int run, bool inForward) {
    LayerGraph::Op out;
    out.run = run;
    auto kernel = dyn_cast<KernelOpInterface>(op);
    for (MlirValue operand : op->getOperands()) {
      out.operands.push_back(number(operand));
      out.readsParameters |= operand.getDefiningOp<GetOp>() != nullptr;
    }
    uint64_t bytes = 0;
    for (OpResult value : op->getResults()) {
      int id = number(value);
      result.values[id].producer = result.ops.size();
      out.results.push_back({id, kernel ? takenOver(kernel, value.getResultNumber()) : -1});
      bytes += result.values[id].bytes;
    }
    if (kernel) {
      out.workspace = RoundUp(kernel.getWorkspaceBytes(costs.device));
      out.seconds = costs.kernelSeconds(op);
      out.background = costs.background ? costs.background(op) : 0;
    }
    if (inForward && isActivationOp(op)) {
      out.mayRecompute =
          !graph.isReadOutside(op, [&](unsigned reader) { return reader >= begin && reader < end; });
      bool scalar = llvm::all_of(
          op->getResultTypes(), [](Type type) { return cast<RankedTensorType>(type).getNumElements() == 1; });
      out.offloadSeconds = costs.copySeconds && !scalar ? 2 * costs.copySeconds(bytes) : 0;
    }
    result.origins.push_back(op);
    result.ops.push_back(std::move(out));
  }

  const TrainingGraph &graph;
  unsigned begin, end;
  const LayerCosts &costs;
  SmallVector<Operation *> forward;
  ArrayRef<std::pair<Operation *, unsigned>> backward;
  Operation *firstBackward = nullptr;
  llvm::DenseSet<Operation *> own;
  llvm::DenseMap<MlirValue, int> numbers;
  LayerGraph result;
};

} // namespace

uint64_t activationBytes(Operation *op, int floatBytes) {
  uint64_t bytes = 0;
  for (Type type : op->getResultTypes())
    bytes += bytesOf(type, floatBytes);
  return bytes;
}

LayerGraph cutLayers(const TrainingGraph &graph, unsigned begin, unsigned end, const LayerCosts &costs) {
  return Cutter(graph, begin, end, costs).cut();
}

} // namespace ft::compiler
