#include "compiler/collapse/repeated_layers.h"

#include "dialects/ft/dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

namespace ft::compiler {

using namespace mlir;
using mlir::ft::GetOp;
using mlir::ft::ParameterOp;

namespace {

using Block = RepeatedLayers::Block;

/// More layers than any pattern of models repeats: local and global attention by turns, a mixture of experts
/// in every n-th.
constexpr size_t kLongestPeriod = 6;

llvm::SmallVector<Block> layersOf(func::FuncOp forward) {
  llvm::MapVector<StringAttr, Block> layers;
  for (Operation &op : forward.getBody().front().without_terminator())
    if (StringAttr layer = mlir::ft::getLayer(&op))
      layers[layer].push_back(&op);
  llvm::SmallVector<Block> result;
  for (auto &layer : layers)
    result.push_back(std::move(layer.second));
  return result;
}

/// Where a result of a block is made: op and result, by number.
using Place = std::pair<size_t, unsigned>;
using Places = llvm::DenseMap<Value, Place>;

Places placesOf(const Block &block) {
  Places places;
  for (auto [i, op] : llvm::enumerate(block))
    for (OpResult result : op->getResults())
      places[result] = {i, result.getResultNumber()};
  return places;
}

/// What tells an op from one of another layer and means nothing: names.
DictionaryAttr withoutNames(Operation *op) {
  NamedAttrList attributes(op->getAttrDictionary());
  attributes.erase(mlir::ft::kLayerAttr);
  if (isa<mlir::ft::RandomOpInterface>(op))
    attributes.erase("stream");
  if (isa<GetOp>(op))
    attributes.erase("parameter");
  return attributes.getDictionary(op->getContext());
}

ParameterOp parameterOf(GetOp get) {
  return SymbolTable::lookupNearestSymbolFrom<ParameterOp>(get, get.getParameterAttr());
}

/// Drawn and trained alike, or the same one.
bool haveEqualParameters(Operation *a, Operation *b) {
  auto first = dyn_cast<GetOp>(a), second = dyn_cast<GetOp>(b);
  if (!first || !second)
    return true;
  NamedAttrList one(parameterOf(first)->getAttrDictionary()), other(parameterOf(second)->getAttrDictionary());
  for (NamedAttrList *attributes : {&one, &other})
    for (llvm::StringRef name : {"sym_name", "aliases", "stored_as", "layer"})
      attributes->erase(name);
  return one.getDictionary(a->getContext()) == other.getDictionary(a->getContext());
}

/// One block and the next: where it reads what the one before made, so does its neighbour.
class Neighbours {
public:
  Neighbours(const Block &first, const Block &second, const Block *before)
      : first(first), second(second), inFirst(placesOf(first)), inSecond(placesOf(second)) {
    if (before != nullptr)
      inBefore = placesOf(*before);
  }

  bool areEqual() {
    if (first.size() != second.size())
      return false;
    for (auto [a, b] : llvm::zip_equal(first, second))
      if (!areAlike(a, b) || !readAlike(a, b))
        return false;
    return true;
  }

  /// Of results of the first block that the second reads: what the first has in that place.
  const llvm::DenseMap<Value, Value> &handedOn() const { return handed; }

private:
  static bool areAlike(Operation *a, Operation *b) {
    return a->getName() == b->getName() && a->getResultTypes() == b->getResultTypes() &&
           a->getNumOperands() == b->getNumOperands() && withoutNames(a) == withoutNames(b) &&
           haveEqualParameters(a, b);
  }

  bool readAlike(Operation *a, Operation *b) {
    for (auto [x, y] : llvm::zip_equal(a->getOperands(), b->getOperands())) {
      auto own = inSecond.find(y);
      if (own != inSecond.end()) {
        auto same = inFirst.find(x);
        if (same == inFirst.end() || same->second != own->second)
          return false;
        continue;
      }
      auto found = inFirst.find(y);
      if (found == inFirst.end()) { // of no block
        if (x != y)
          return false;
        continue;
      }
      if (inFirst.contains(x) || x.getType() != y.getType() || !handed.try_emplace(y, x).first->second ||
          handed[y] != x)
        return false;
      auto earlier = inBefore.find(x);
      if (!inBefore.empty() && (earlier == inBefore.end() || earlier->second != found->second))
        return false;
    }
    return true;
  }

  const Block &first, &second;
  Places inFirst, inSecond, inBefore;
  llvm::DenseMap<Value, Value> handed;
};

/// Blocks of `period` layers from layer `begin` on, as many as are equal.
RepeatedLayers repeatedFrom(llvm::ArrayRef<Block> layers, size_t begin, size_t period) {
  RepeatedLayers repeated;
  for (size_t at = begin; at + period <= layers.size(); at += period) {
    Block next;
    for (const Block &layer : layers.slice(at, period))
      next.append(layer.begin(), layer.end());
    size_t count = repeated.blocks.size();
    if (count > 0 &&
        !Neighbours(repeated.blocks[count - 1], next, count > 1 ? &repeated.blocks[count - 2] : nullptr)
             .areEqual())
      break;
    repeated.blocks.push_back(std::move(next));
  }
  return repeated;
}

/// What reads the block is the block itself, or the next one where that reads what was handed on.
bool isReadOnlyBy(const Block &block, const Block &next, const llvm::DenseMap<Value, Value> &handed) {
  llvm::DenseSet<Operation *> inside(block.begin(), block.end()), after(next.begin(), next.end());
  for (Operation *op : block)
    for (OpOperand &use : op->getUses())
      if (!inside.contains(use.getOwner()) &&
          (!after.contains(use.getOwner()) || !handed.contains(use.get())))
        return false;
  return true;
}

void eraseUnread(ModuleOp module, const llvm::DenseSet<Attribute> &parameters) {
  llvm::DenseSet<Attribute> read;
  module.walk([&](GetOp get) { read.insert(get.getParameterAttr().getAttr()); });
  for (ParameterOp parameter : llvm::make_early_inc_range(module.getOps<ParameterOp>()))
    if (parameters.contains(parameter.getSymNameAttr()) && !read.contains(parameter.getSymNameAttr()))
      parameter.erase();
}

} // namespace

RepeatedLayers findRepeatedLayers(func::FuncOp forward) {
  llvm::SmallVector<Block> layers = layersOf(forward);
  RepeatedLayers best;
  size_t covered = 0;
  for (size_t period = 1; period <= kLongestPeriod; ++period)
    for (size_t begin = 0; begin + 2 * period <= layers.size();) {
      RepeatedLayers found = repeatedFrom(layers, begin, period);
      size_t layersOfFound = found.blocks.size() * period;
      begin += found.blocks.size() > 1 ? layersOfFound : 1;
      if (found.blocks.size() < 2 || layersOfFound <= covered)
        continue;
      covered = layersOfFound;
      best = std::move(found);
    }
  return best;
}

void keepRepeatedLayers(ModuleOp module, int64_t count) {
  auto forward = module.lookupSymbol<func::FuncOp>(mlir::ft::kForwardFunction);
  RepeatedLayers repeated = findRepeatedLayers(forward);
  llvm::DenseSet<Attribute> parameters;
  while (repeated.count() > std::max<int64_t>(count, 2)) {
    // The second goes: of the first, what it reads need not be a block's.
    const Block &block = repeated.blocks[1], &next = repeated.blocks[2];
    Neighbours neighbours(block, next, &repeated.blocks[0]);
    if (!neighbours.areEqual() || !isReadOnlyBy(block, next, neighbours.handedOn()))
      break;
    for (auto [made, before] : neighbours.handedOn())
      made.replaceAllUsesWith(before);
    for (Operation *op : llvm::reverse(block)) {
      if (auto get = dyn_cast<GetOp>(op))
        parameters.insert(get.getParameterAttr().getAttr());
      op->erase();
    }
    repeated.blocks.erase(repeated.blocks.begin() + 1);
  }
  eraseUnread(module, parameters);
}

} // namespace ft::compiler
