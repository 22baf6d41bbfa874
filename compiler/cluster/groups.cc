// Ops have numbers, in the order of the block; a group has that of the member in whose place it stands. What
// is read always has a lower number than who reads it, before and after two groups become one: this one takes
// the number of the later group if nobody between reads the earlier one, or that of the earlier one if the
// later one reads nothing between. So groups never wait for each other. Of other ops only those move that
// would have been a group, and compute nothing.
#include "compiler/cluster/groups.h"

#include "compiler/codegen/cluster_space.h"
#include "compiler/codegen/elements.h"

namespace ft::compiler {
namespace {

using namespace mlir;

bool isMove(Operation *op) {
  return isa<mlir::ft::BroadcastOp, mlir::ft::ConcatOp, mlir::ft::ReshapeOp, mlir::ft::SliceOp,
             mlir::ft::TransposeOp>(op);
}

// What is read one by one in a column is better moved by a kernel of its own, if it can be.
bool hasStridedColumns(const ClusterBody &body) {
  return llvm::any_of(body.reads, [](const ClusterBody::Read &read) { return read.place.column_stride > 1; });
}

int64_t resultElements(Operation *op) { return elementsOf(op->getResult(0)); }

// Whether in the end all that reads `op` sums it up, element by element.
bool isOnlySummed(Operation *op) {
  llvm::SetVector<Operation *> reached;
  reached.insert(op);
  for (size_t i = 0; i < reached.size(); ++i) {
    if (reached[i]->use_empty())
      return false;
    for (Operation *user : reached[i]->getUsers())
      if (elementwiseRowOf(user) && resultElements(user) == resultElements(op))
        reached.insert(user);
      else if (!isa<mlir::ft::ReduceOp>(user))
        return false;
  }
  return true;
}

// A function of the sum of a row, which is then summed over rows: there many rows are computed at a time.
mlir::ft::ReduceOp sumWithoutFunction(Operation *op) {
  const ElementwiseRow *row = elementwiseRowOf(op);
  auto sum = row && isElementary(row->kind) ? op->getOperand(0).getDefiningOp<mlir::ft::ReduceOp>()
                                            : mlir::ft::ReduceOp();
  return sum && resultElements(sum) > 1 && isOnlySummed(op) ? sum : mlir::ft::ReduceOp();
}

// How many ops there are, and of how many elements.
struct Work {
  int64_t ops = 0, elements = 0;

  void add(int64_t count, int64_t of) {
    ops += count;
    elements += of;
  }
};

Work workIn(const ClusterBody &body) {
  using Kind = ClusterBody::Op::Kind;
  Work work;
  std::vector<bool> columns = HasColumns(body);
  for (auto [i, op] : llvm::enumerate(body.ops))
    if (op.kind != Kind::kFill && op.kind != Kind::kIota && op.kind != Kind::kConvert)
      work.add(1, columns[body.reads.size() + i] || op.kind == Kind::kReduce ? body.elements() : body.rows);
  return work;
}

// Sums over rows are outputs of a body, with what they are added to.
Work workOf(ArrayRef<Operation *> ops, const ClusterBody &body) {
  Work work;
  for (Operation *op : ops)
    if (!isMove(op))
      work.add(1, elementsOf(isa<mlir::ft::ReduceOp>(op) ? op->getOperand(0) : op->getResult(0)));
  llvm::SmallDenseSet<uint32_t> sums;
  for (const ClusterBody::Output &output : body.outputs) {
    if (!output.over_rows)
      continue;
    bool isAdded = output.acc >= 0, isFirst = sums.insert(output.result).second;
    work.add(isFirst ? -1 - int64_t{isAdded} : 0, -body.elements() - (isAdded ? body.columns : 0));
  }
  return work;
}

// Computed at one place each, or piece by piece. Reductions may have conversions beside them, and pieces are
// combined before they are reduced.
bool computesTwice(const ClusterBody &body, ArrayRef<Operation *> ops) {
  Work made = workIn(body), asked = workOf(ops, body);
  return made.ops > asked.ops && made.elements > asked.elements;
}

} // namespace

bool isComputed(Operation *op) {
  if (auto copy = dyn_cast<mlir::ft::CopyOp>(op)) // a cast of a tensor
    return isa<RankedTensorType>(copy.getType()) && copy.getX().getType() != copy.getType();
  return elementwiseRowOf(op) || isa<mlir::ft::ConvertOp, mlir::ft::ReduceOp, mlir::ft::RandomBitsOp>(op);
}

bool mayBeMember(Operation *op) { return mlir::ft::getPhase(op) && (isComputed(op) || isMove(op)); }

mlir::ft::ViewOp viewOf(Value value) {
  while (auto reshape = value.getDefiningOp<mlir::ft::ReshapeOp>())
    value = reshape.getX();
  return value.getDefiningOp<mlir::ft::ViewOp>();
}

namespace {

class Grouping {
public:
  Grouping(Block &block, int64_t most, BodyFunctions &bodies) : most(most), bodies(bodies) {
    for (Operation &op : block) {
      numbers[&op] = ops.size();
      ops.push_back(&op);
    }
    groupOf.resize(ops.size());
    runOf.resize(ops.size());
    for (auto [number, op] : llvm::enumerate(ops)) {
      groupOf[number] = number;
      groups.push_back({{static_cast<unsigned>(number)}, static_cast<unsigned>(number), isAlone(op)});
      if (mlir::ft::ReduceOp sum = mayBeMember(op) ? sumWithoutFunction(op) : mlir::ft::ReduceOp())
        apart.push_back({numbers.lookup(sum), static_cast<unsigned>(number)});
    }
    findRuns();
  }

  // Neighbours first: what was one composite does not go to those who made its operands, piece by piece.
  SmallVector<PlacedGroup> run() {
    mergeAlong([&](unsigned maker, unsigned reader) { return runOf[maker] == runOf[reader]; });
    mergeReaders();
    mergeAlong([](unsigned, unsigned) { return true; });
    SmallVector<PlacedGroup> result;
    for (const Group &group : groups)
      if (!group.closed && !group.members.empty() && (computing(group) > 0 || group.members.size() > 1))
        result.push_back({opsOf(group.members), ops[group.number], computing(group) > 0});
    return result;
  }

private:
  // What only moves elements waits for a reader that computes, if it has several.
  void mergeAlong(llvm::function_ref<bool(unsigned maker, unsigned reader)> wanted) {
    for (unsigned number = 0; number < ops.size(); ++number)
      if (!groups[groupOf[number]].closed)
        for (Value operand : ops[number]->getOperands())
          if (auto maker = numbers.find(operand.getDefiningOp());
              maker != numbers.end() && wanted(maker->second, number) &&
              (ops[maker->second]->hasOneUse() || anyComputes(maker->second, number)))
            merge(groupOf[maker->second], groupOf[number]);
  }

  bool anyComputes(unsigned a, unsigned b) const {
    return computing(groups[groupOf[a]]) + computing(groups[groupOf[b]]) > 0;
  }

  // Neighbours that read the same, which is read once then: the parts of a derivative that share nothing
  // else. What only moves elements would be written once more.
  void mergeReaders() {
    llvm::DenseMap<Value, unsigned> readers; // the last of each value
    for (unsigned number = 0; number < ops.size(); ++number)
      for (Value operand : ops[number]->getOperands()) {
        if (isConstant(operand)) // everybody has it
          continue;
        if (auto before = readers.find(operand);
            before != readers.end() && runOf[before->second] == runOf[number] &&
            computing(groups[groupOf[before->second]]) > 0 && computing(groups[groupOf[number]]) > 0)
          merge(groupOf[before->second], groupOf[number]);
        readers[operand] = number;
      }
  }

  // Constants, which everybody has, are nothing between two ops.
  void findRuns() {
    std::optional<unsigned> before;
    for (auto [number, op] : llvm::enumerate(ops)) {
      runOf[number] = before && continuesRun(ops[*before], op) ? runOf[*before] : number;
      if (op->getNumResults() != 1 || !isConstant(op->getResult(0)))
        before = number;
    }
  }

  // One behind the other, of one layer and phase.
  static bool continuesRun(Operation *before, Operation *op) {
    return mayBeMember(before) && mayBeMember(op) && mlir::ft::getLayer(before) == mlir::ft::getLayer(op) &&
           mlir::ft::getPhase(before) == mlir::ft::getPhase(op);
  }

  struct Group {
    SmallVector<unsigned> members; // ascending
    unsigned number;
    bool closed; // no body of a cluster
  };

  // Nothing can join it. A reshape alone may make columns of what are rows beside other ops.
  bool isAlone(Operation *op) { return !mayBeMember(op) || (!isMove(op) && !bodies.of(OpGroup(op))); }

  SmallVector<Operation *> opsOf(ArrayRef<unsigned> members) const {
    return llvm::map_to_vector(members, [&](unsigned number) { return ops[number]; });
  }

  unsigned numberOf(Operation *op) const { return groups[groupOf[numbers.lookup(op)]].number; }

  int64_t computing(const Group &group) const {
    return llvm::count_if(group.members, [&](unsigned number) { return !isMove(ops[number]); });
  }

  // What one group may have of both; forward is over before backward begins.
  bool isSamePhase(const Group &a, const Group &b) const {
    auto isForward = [&](const Group &group) {
      return mlir::ft::getPhase(ops[group.number]).getValue() == mlir::ft::kPhaseForward;
    };
    return isForward(a) == isForward(b);
  }

  // Before `number` nobody else reads what `group` makes, or gives up what it reads.
  bool mayMoveTo(unsigned number, const Group &group, const Group &other) const {
    auto isLater = [&](Operation *user) {
      const Group &its = groups[groupOf[numbers.lookup(user)]];
      return &its == &group || &its == &other || its.number > number;
    };
    for (unsigned member : group.members) {
      for (Operation *user : ops[member]->getUsers())
        if (!isLater(user))
          return false;
      for (Value operand : ops[member]->getOperands())
        if (mlir::ft::ViewOp view = viewOf(operand))
          for (Operation *user : view.getFlat().getUsers())
            if (!isMemoryEffectFree(user) && numberOf(user) > group.number && numberOf(user) < number)
              return false;
    }
    return true;
  }

  // All that `group` reads is there before `number`.
  bool mayMoveBackTo(unsigned number, const Group &group, const Group &other) const {
    for (unsigned member : group.members)
      for (Value operand : ops[member]->getOperands())
        if (Operation *maker = operand.getDefiningOp(); maker && numbers.contains(maker)) {
          const Group &its = groups[groupOf[numbers.lookup(maker)]];
          if (&its != &group && &its != &other && its.number > number)
            return false;
        }
    return true;
  }

  // Gradients of parameters are made where they are packed, and that buffer is there from the first of them
  // on: not while those of another layer are made.
  bool makesGradientsOfOthers(const Group &group, Operation *place) const {
    auto isPacked = [](Operation *op) {
      while (op->hasOneUse() && isa<mlir::ft::ReshapeOp>(*op->user_begin()))
        op = *op->user_begin();
      return llvm::any_of(op->getUsers(), [](Operation *user) { return isa<mlir::ft::PackOp>(user); });
    };
    return llvm::any_of(group.members, [&](unsigned member) {
      return mlir::ft::getLayer(ops[member]) != mlir::ft::getLayer(place) && isPacked(ops[member]);
    });
  }

  bool areApart(unsigned group, unsigned other) const {
    return llvm::any_of(apart, [&](auto pair) {
      unsigned first = groupOf[pair.first], second = groupOf[pair.second];
      return (first == group && second == other) || (first == other && second == group);
    });
  }

  void merge(unsigned earlier, unsigned later) {
    if (groups[earlier].number > groups[later].number) // of two readers of a value, one may have moved
      std::swap(earlier, later);
    Group &a = groups[earlier], &b = groups[later];
    if (earlier == later || a.closed || b.closed || !isSamePhase(a, b) ||
        computing(a) + computing(b) > most || areApart(earlier, later))
      return;
    bool down = mayMoveTo(b.number, a, b);
    if (!down && (!mayMoveBackTo(a.number, b, a) || makesGradientsOfOthers(b, ops[a.number])))
      return;
    SmallVector<unsigned> members;
    std::merge(a.members.begin(), a.members.end(), b.members.begin(), b.members.end(),
               std::back_inserter(members));
    SmallVector<Operation *> together = opsOf(members);
    const BodyFunction *made = bodies.of(OpGroup(together));
    if (!made || hasStridedColumns(made->body) || computesTwice(made->body, together))
      return;
    for (unsigned member : a.members)
      groupOf[member] = later;
    b.number = down ? b.number : a.number;
    b.members = std::move(members);
    a.members.clear();
  }

  int64_t most;
  BodyFunctions &bodies;
  llvm::DenseMap<Operation *, unsigned> numbers;
  SmallVector<Operation *> ops;
  SmallVector<unsigned> groupOf;                    // by number of an op
  SmallVector<std::pair<unsigned, unsigned>> apart; // ops that are not of one group
  SmallVector<unsigned> runOf;                      // the first op of those that follow each other
  SmallVector<Group> groups;
};

} // namespace

SmallVector<PlacedGroup> formGroups(Block &block, int64_t most, BodyFunctions &bodies) {
  return Grouping(block, most, bodies).run();
}

} // namespace ft::compiler
