// The best that recomputation can do under a budget, found by trying everything: no layers, no classes, no
// model of the peak.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ft::test {

class ExactSearch {
 public:
  using Seconds = std::function<double(mlir::Operation*)>;
  // Arena of a rank, compiled with these ops computed again.
  using Arena = std::function<absl::StatusOr<uint64_t>(const std::vector<mlir::Operation*>& recomputed)>;

  // `step` is a training step before stage remat, with at most 24 ops whose recomputation could be of use.
  ExactSearch(mlir::func::FuncOp step, const Seconds& seconds, Arena arena);

  struct Best {
    double seconds = 0;  // of ops computed again
    uint64_t arena_bytes = 0;
    std::vector<mlir::Operation*> recomputed;
  };

  // The cheapest set of ops with which the arena is at most `budget`, if there is one of less than `below`
  // seconds. Sets are compiled from the cheapest on, but for those of which what is surely alive, with
  // `persistent` bytes, is more at some op.
  absl::StatusOr<std::optional<Best>> Find(uint64_t budget, uint64_t persistent, double below);

  size_t candidates() const { return candidates_.size(); }
  size_t sets() const { return sets_.size(); }
  int compilations() const { return compilations_; }

 private:
  struct Set {
    double seconds;
    uint32_t ops;  // bit i: candidates_[i]
  };

  // The step with numbers for ops and values.
  struct Result {
    int value;
    int taken;  // the value whose bytes it may take over, -1: none
  };
  struct Op {
    std::vector<int> operands;
    std::vector<Result> results;
    uint64_t scratch = 0;
    int candidate = -1;
    int run = 0;  // changes with the layer
    bool backward = false;
    bool joins = false;
    bool reads_parameters = false;
  };
  struct Value {
    uint64_t bytes = 0;
    int candidate = -1;  // that makes it
  };
  struct Execution {
    int op;
    bool again;
  };

  void Number(mlir::Block& block);
  void FindCandidates(mlir::Block& block);
  void ListSets(const Seconds& seconds);
  uint32_t Executed(uint32_t ops) const;
  uint32_t MissingFor(const Op& reader, uint32_t ops, uint32_t done) const;
  std::vector<Execution> Order(uint32_t ops) const;
  uint64_t LeastBytes(uint32_t ops) const;

  Arena arena_;
  std::vector<mlir::Operation*> candidates_;
  std::vector<uint32_t> inputs_;  // candidates that candidate i reads
  std::vector<Op> ops_;
  std::vector<Value> values_;
  std::vector<int> op_of_candidate_;
  std::vector<const void*> layer_of_op_;
  std::vector<const void*> layer_of_candidate_;
  uint32_t read_by_backward_ = 0;
  std::vector<Set> sets_;  // cheapest first
  std::vector<uint64_t> least_bytes_;
  std::vector<uint64_t> arenas_;  // 0: not compiled yet
  int compilations_ = 0;
};

}  // namespace ft::test
