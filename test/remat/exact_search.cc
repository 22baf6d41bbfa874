#include "test/remat/exact_search.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "dialects/ft/dialect.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "runtime/base/elementwise.h"
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
  const uint64_t bytes = type.getNumElements() * mlir::ft::elementBytes(type.getElementType());
  return (bytes + 255) / 256 * 256;
}

// May become a part of a cluster.
bool Joins(Operation* op) {
  return mlir::isa<mlir::ft::CallOp, mlir::ft::BroadcastOp, mlir::ft::ReshapeOp, mlir::ft::CopyOp,
                   mlir::ft::ConvertOp, mlir::ft::ReduceOp, mlir::ft::FillOp>(op) ||
         llvm::any_of(kElementwiseRows, [&](const ElementwiseRow& row) {
           return row.name == std::string_view(op->getName().stripDialect());
         });
}

// Written into a flat gradient or an output, which live anyway.
bool HasPlace(Value value) {
  for (Operation* user : value.getUsers()) {
    if (mlir::isa<mlir::ft::PackOp, mlir::func::ReturnOp>(user)) return true;
    auto kernel = mlir::dyn_cast<KernelOpInterface>(user);
    for (unsigned i = 0; kernel && i < user->getNumResults(); ++i) {
      if (kernel.getTiedOperand(i) == value && HasPlace(user->getResult(i))) return true;
    }
  }
  return false;
}

}  // namespace

ExactSearch::ExactSearch(mlir::func::FuncOp step, const Seconds& seconds, Arena arena)
    : arena_(std::move(arena)) {
  FindCandidates(step.getBody().front());
  Number(step.getBody().front());
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
    for (mlir::Value operand : reader->getOperands()) {
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
      for (mlir::Value result : candidates_[i]->getResults()) {
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

void ExactSearch::Number(mlir::Block& block) {
  std::map<void*, int> numbers;
  const auto number = [&](mlir::Value value) {
    const auto [it, is_new] =
        numbers.try_emplace(value.getAsOpaquePointer(), static_cast<int>(values_.size()));
    if (is_new) values_.emplace_back();
    return it->second;
  };
  mlir::StringAttr layer;
  op_of_candidate_.resize(candidates_.size());
  for (Operation& op : block) {
    auto kernel = mlir::dyn_cast<KernelOpInterface>(op);
    if (!kernel) continue;
    Op out;
    out.backward = IsOf(&op, "backward");
    out.run = ops_.empty() ? 0 : ops_.back().run;
    const mlir::StringAttr own = mlir::ft::getLayer(&op);
    const bool turn = out.backward && (ops_.empty() || !ops_.back().backward);
    if (turn || (own && own != layer)) ++out.run;
    if (own) layer = own;
    out.joins = Joins(&op);
    out.scratch = (kernel.getWorkspaceBytes(DeviceClass::kCpu) + 255) / 256 * 256;
    const auto candidate = std::find(candidates_.begin(), candidates_.end(), &op);
    if (candidate != candidates_.end()) {
      out.candidate = static_cast<int>(candidate - candidates_.begin());
      op_of_candidate_[out.candidate] = static_cast<int>(ops_.size());
    }
    for (mlir::Value operand : op.getOperands()) {
      out.operands.push_back(number(operand));
      out.reads_parameters |= operand.getDefiningOp<mlir::ft::GetOp>() != nullptr;
    }
    for (mlir::OpResult result : op.getResults()) {
      mlir::Value taken = kernel.getTiedOperand(result.getResultNumber());
      if (!taken) taken = kernel.getReusableOperand(result.getResultNumber());
      const int value = number(result);
      values_[value] = {HasPlace(result) ? 0 : Bytes(result), out.candidate};
      const bool fits = taken && Bytes(taken) == Bytes(result);
      out.results.push_back({value, fits ? number(taken) : -1});
    }
    layer_of_op_.push_back(own.getAsOpaquePointer());
    ops_.push_back(std::move(out));
  }
  for (Operation* op : candidates_)
    layer_of_candidate_.push_back(mlir::ft::getLayer(op).getAsOpaquePointer());
}

// Of `ops`, those that have to be computed again before `reader`, but for those that are `done`.
uint32_t ExactSearch::MissingFor(const Op& reader, uint32_t ops, uint32_t done) const {
  uint32_t missing = 0, open = 0;
  for (const int operand : reader.operands) {
    if (values_[operand].candidate >= 0) open |= 1u << values_[operand].candidate;
  }
  open &= ops & ~done;
  while (open != 0) {
    missing |= open;
    uint32_t more = 0;
    for (; open != 0; open &= open - 1) more |= inputs_[std::countr_zero(open)];
    open = more & ops & ~done & ~missing;
  }
  return missing;
}

// As ft-apply-remat documents it: right before the first reader, in the order of forward; up to the last one
// of another layer in front of the reader's run, when such ones read parameters.
std::vector<ExactSearch::Execution> ExactSearch::Order(uint32_t ops) const {
  std::vector<Execution> order;
  order.reserve(2 * ops_.size());
  uint32_t done = 0;
  size_t front = 0;
  int run = -1;
  for (int i = 0; i < static_cast<int>(ops_.size()); ++i) {
    const Op& op = ops_[i];
    if (op.run != run) {
      run = op.run;
      front = order.size();
    }
    const uint32_t missing = op.backward ? MissingFor(op, ops, done) : 0;
    done |= missing;
    uint32_t ahead = 0;
    bool gathers = false;
    for (uint32_t rest = missing; rest != 0; rest &= rest - 1) {
      const int candidate = std::countr_zero(rest);
      if (layer_of_candidate_[candidate] == layer_of_op_[i]) continue;
      ahead = missing & ((2u << candidate) - 1);
      gathers |= ops_[op_of_candidate_[candidate]].reads_parameters;
    }
    if (!gathers) ahead = 0;
    for (uint32_t rest = ahead; rest != 0; rest &= rest - 1) {
      order.insert(order.begin() + static_cast<ptrdiff_t>(front),
                   Execution{op_of_candidate_[std::countr_zero(rest)], true});
      ++front;
    }
    for (uint32_t rest = missing & ~ahead; rest != 0; rest &= rest - 1)
      order.push_back({op_of_candidate_[std::countr_zero(rest)], true});
    order.push_back({i, false});
  }
  return order;
}

// The most bytes that are surely there together while a kernel of backward runs that is none of a cluster:
// what it reads, its scratch, what such kernels before and after it tell each other, and what forward has
// kept for later. Ops that may be joined with neighbours need not keep what they tell each other, and may run
// earlier or later.
uint64_t ExactSearch::LeastBytes(uint32_t ops) const {
  const std::vector<Execution> order = Order(ops);
  // Copies of a value: 2 v as forward made it, 2 v + 1 computed again.
  const auto copy_read = [&](const Execution& execution, int value) {
    const int candidate = values_[value].candidate;
    const bool later = execution.again || ops_[execution.op].backward;
    return 2 * value + (later && candidate >= 0 && (ops >> candidate & 1) != 0 ? 1 : 0);
  };
  const auto is_backward = [&](const Execution& execution) {
    return execution.again || ops_[execution.op].backward;
  };
  // Of each copy, until when it is surely there: its last reader, but for what backward makes the last that
  // runs alone.
  std::vector<int> last(2 * values_.size(), -1), last_alone(2 * values_.size(), -1);
  for (int i = 0; i < static_cast<int>(order.size()); ++i) {
    for (const int operand : ops_[order[i].op].operands) {
      const int copy = copy_read(order[i], operand);
      last[copy] = i;
      if (!ops_[order[i].op].joins) last_alone[copy] = i;
    }
  }
  uint64_t kept = 0, most = 0;
  std::vector<std::vector<int>> ends(order.size());  // copies
  std::vector<char> counted(2 * values_.size());
  for (int i = 0; i < static_cast<int>(order.size()); ++i) {
    const Op& op = ops_[order[i].op];
    const bool backward = is_backward(order[i]);
    uint64_t read = 0;
    std::set<int> seen;
    for (const int operand : op.operands) {
      const int copy = copy_read(order[i], operand);
      if (counted[copy] == 0 && seen.insert(copy).second) read += values_[operand].bytes;
    }
    if (backward && !op.joins) most = std::max(most, kept + read + op.scratch);
    for (const int copy : ends[i]) kept -= values_[copy / 2].bytes;
    for (const Result& result : op.results) {
      const int copy = 2 * result.value + (order[i].again ? 1 : 0);
      const int end = !backward ? last[copy] : !op.joins ? last_alone[copy] : -1;
      if (end <= i) continue;
      counted[copy] = 1;
      kept += values_[result.value].bytes;
      ends[end].push_back(copy);
    }
  }
  return most;
}

absl::StatusOr<std::optional<ExactSearch::Best>> ExactSearch::Find(uint64_t budget, uint64_t persistent,
                                                                   double below) {
  for (size_t i = 0; i < sets_.size() && sets_[i].seconds < below; ++i) {
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
