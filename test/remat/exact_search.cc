#include "test/remat/exact_search.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "dialects/ft/dialect.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "runtime/base/status_macros.h"

namespace ft::test {

using mlir::Operation;
using mlir::Value;
using mlir::ft::KernelOpInterface;

namespace {

bool IsOf(Operation* op, llvm::StringRef phase) {
  auto attr = mlir::ft::getPhase(op);
  return attr && attr == phase;
}

bool CanRepeat(Operation* op) {
  auto kernel = mlir::dyn_cast_or_null<KernelOpInterface>(op);
  return kernel && kernel.isRecomputable() && IsOf(op, "forward") && mlir::isMemoryEffectFree(op);
}

uint64_t Bytes(Value value) {
  auto type = mlir::dyn_cast<mlir::RankedTensorType>(value.getType());
  if (!type) return 0;
  const uint64_t bytes = type.getNumElements() * type.getElementTypeBitWidth() / 8;
  return (bytes + 255) / 256 * 256;
}

// Written into a flat gradient, which lives anyway.
bool GoesIntoPack(Value value) {
  for (Operation* user : value.getUsers()) {
    if (mlir::isa<mlir::ft::PackOp>(user)) return true;
    auto kernel = mlir::dyn_cast<KernelOpInterface>(user);
    for (unsigned i = 0; kernel && i < user->getNumResults(); ++i) {
      if (kernel.getTiedOperand(i) == value && GoesIntoPack(user->getResult(i))) return true;
    }
  }
  return false;
}

// A value, and whether it is the one that was computed again.
using Copy = std::pair<void*, bool>;

struct Execution {
  Operation* op;
  bool again;
};

}  // namespace

ExactSearch::ExactSearch(mlir::func::FuncOp step, const Seconds& seconds, Arena arena)
    : step_(step), arena_(std::move(arena)) {
  FindCandidates(step.getBody().front());
  ListSets(seconds);
}

void ExactSearch::FindCandidates(mlir::Block& block) {
  std::set<Operation*> wanted;
  std::vector<Operation*> open;
  for (Operation& op : block) {
    if (IsOf(&op, "backward")) open.push_back(&op);
  }
  while (!open.empty()) {
    Operation* reader = open.back();
    open.pop_back();
    for (Value operand : reader->getOperands()) {
      Operation* op = operand.getDefiningOp();
      if (CanRepeat(op) && wanted.insert(op).second) open.push_back(op);
    }
  }
  for (Operation& op : block) {
    if (wanted.count(&op)) candidates_.push_back(&op);
  }
  for (Operation* op : candidates_) {
    uint32_t inputs = 0;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      for (Value result : candidates_[i]->getResults()) {
        if (llvm::is_contained(op->getOperands(), result)) inputs |= 1u << i;
      }
    }
    inputs_.push_back(inputs);
  }
  for (size_t i = 0; i < candidates_.size(); ++i) {
    for (Operation* user : candidates_[i]->getUsers()) {
      if (IsOf(user, "backward")) read_by_backward_ |= 1u << i;
    }
  }
}

// Those of `ops` that are needed when all of them are dropped after forward.
uint32_t ExactSearch::Executed(uint32_t ops) const {
  uint32_t executed = ops & read_by_backward_;
  for (uint32_t open = executed; open != 0;) {
    const int op = std::countr_zero(open);
    open &= open - 1;
    const uint32_t more = inputs_[op] & ops & ~executed;
    executed |= more;
    open |= more;
  }
  return executed;
}

void ExactSearch::ListSets(const Seconds& seconds) {
  std::vector<double> cost;
  for (Operation* op : candidates_) cost.push_back(seconds(op));
  for (uint32_t ops = 0; ops < 1u << candidates_.size(); ++ops) {
    if (Executed(ops) != ops) continue;  // the same as a smaller set
    double sum = 0;
    for (uint32_t rest = ops; rest != 0; rest &= rest - 1) sum += cost[std::countr_zero(rest)];
    sets_.push_back({sum, ops});
  }
  std::stable_sort(sets_.begin(), sets_.end(),
                   [](const Set& a, const Set& b) { return a.seconds < b.seconds; });
  least_bytes_.assign(sets_.size(), 0);
  arenas_.assign(sets_.size(), 0);
}

// The most bytes of values that are alive together, each op computed again right before it is first needed
// and every result taking over what dies where its kernel allows that.
uint64_t ExactSearch::LeastBytes(uint32_t ops) {
  std::map<Operation*, size_t> number;
  for (size_t i = 0; i < candidates_.size(); ++i) number[candidates_[i]] = i;
  const auto dropped = [&](Value value) {
    const auto it = number.find(value.getDefiningOp());
    return it != number.end() && (ops >> it->second & 1) != 0;
  };
  std::vector<Execution> order;
  std::set<Operation*> done;
  const std::function<void(Operation*)> again = [&](Operation* reader) {
    for (Value operand : reader->getOperands()) {
      if (!dropped(operand) || !done.insert(operand.getDefiningOp()).second) continue;
      again(operand.getDefiningOp());
      order.push_back({operand.getDefiningOp(), true});
    }
  };
  for (Operation& op : step_.getBody().front()) {
    if (IsOf(&op, "backward")) again(&op);
    order.push_back({&op, false});
  }
  const auto copy_read = [&](const Execution& execution, Value operand) {
    const bool later = execution.again || IsOf(execution.op, "backward");
    return Copy(operand.getAsOpaquePointer(), later && dropped(operand));
  };
  std::map<Copy, size_t> last;
  for (size_t i = 0; i < order.size(); ++i) {
    for (Value operand : order[i].op->getOperands()) last[copy_read(order[i], operand)] = i;
  }
  std::map<Copy, uint64_t> live;
  uint64_t now = 0, most = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    auto kernel = mlir::dyn_cast<KernelOpInterface>(order[i].op);
    if (!kernel) continue;
    uint64_t taken = 0;
    for (mlir::OpResult result : order[i].op->getResults()) {
      if (GoesIntoPack(result)) continue;
      Value operand = kernel.getTiedOperand(result.getResultNumber());
      if (!operand) operand = kernel.getReusableOperand(result.getResultNumber());
      const auto its = operand ? live.find(copy_read(order[i], operand)) : live.end();
      if (its != live.end() && last[its->first] == i) taken += std::min(its->second, Bytes(result));
      const Copy mine(result.getAsOpaquePointer(), order[i].again);
      live[mine] = Bytes(result);
      now += Bytes(result);
      if (!last.count(mine)) last[mine] = i;
    }
    most = std::max(most, now - std::min(taken, now));
    std::erase_if(live, [&](const auto& entry) {
      if (last[entry.first] > i) return false;
      now -= entry.second;
      return true;
    });
  }
  return most;
}

absl::StatusOr<std::optional<ExactSearch::Best>> ExactSearch::Find(uint64_t budget, uint64_t persistent) {
  for (size_t i = 0; i < sets_.size(); ++i) {
    if (least_bytes_[i] == 0) least_bytes_[i] = LeastBytes(sets_[i].ops);
    if (persistent + least_bytes_[i] > budget) continue;
    std::vector<Operation*> recomputed;
    for (uint32_t rest = sets_[i].ops; rest != 0; rest &= rest - 1)
      recomputed.push_back(candidates_[std::countr_zero(rest)]);
    if (arenas_[i] == 0) {
      FT_ASSIGN_OR_RETURN(arenas_[i], arena_(recomputed));
      ++compilations_;
    }
    if (arenas_[i] <= budget) return Best{sets_[i].seconds, arenas_[i], std::move(recomputed)};
  }
  return std::nullopt;
}

}  // namespace ft::test
