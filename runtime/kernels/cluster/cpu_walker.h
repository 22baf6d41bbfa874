// Walks a cluster row by row, with the loops of the elementwise ops: what runs where there is no code for it,
// and the reference of generated code.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/backends/cpu/loops.h"
#include "runtime/kernels/cluster/cpu_chunk.h"
#include "runtime/kernels/cluster/operands.h"

namespace ft::cpu {

class ClusterWalker {
 public:
  ClusterWalker(ClusterOperands operands, const Loops& loops);
  ClusterWalker(const ClusterWalker&) = delete;
  ClusterWalker& operator=(const ClusterWalker&) = delete;

  const ClusterBody& body() const { return body_; }

  // Inputs and results lie elsewhere from here on; as many addresses as before.
  void MoveTo(void* const* addresses) {
    operands_.addresses.assign(addresses, addresses + operands_.addresses.size());
  }

  // Partial results of outputs over rows included; begins at a multiple of BlockRows() where there are such.
  void Rows(int64_t begin, int64_t end) const;

  // Columns of the outputs over rows, after all rows.
  void Combine(int64_t begin, int64_t end) const;

 private:
  // 64 columns of every value; a value without columns has its number in all of them.
  struct Scratch;

  // n columns of a row.
  struct Place {
    int64_t row, column, n;
  };

  void Read(bool of_columns, const Place& place, Scratch& scratch) const;
  void ComputeOps(bool of_columns, int from_level, int to_level, const Place& place, Scratch& scratch) const;
  void Compute(size_t op, const Place& place, Scratch& scratch) const;
  void Write(const ClusterBody::Output& output, const Place& place, Scratch& scratch) const;
  void Draw(const ClusterBody::Op& op, const Place& place, int64_t* words) const;
  void Count(const ClusterBody::Op& op, const Place& place, int64_t* numbers) const;
  void Reduce(int level, int64_t row, int64_t columns, Scratch& scratch) const;
  void WriteOutputs(int64_t row, int64_t columns, Scratch& scratch) const;
  void AddPartials(int64_t row, int64_t column, int64_t n, Scratch& scratch) const;

  void Round(DType dtype, int64_t n, void* chunk) const;
  void SetIdentity(ReductionKind kind, DType dtype, void* chunk) const;
  // sum[i] of `value[i]` more.
  void Add(ReductionKind kind, DType dtype, int64_t n, void* sum, const void* value) const;
  // 64 lanes to one.
  void Join(ReductionKind kind, DType dtype, void* lanes) const;

  void* InputAt(size_t input) const { return operands_.addresses[input]; }
  void* ResultAt(size_t result) const { return operands_.addresses[body_.inputs.size() + result]; }
  void* PartialAt(size_t partial) const {
    return operands_.addresses[body_.inputs.size() + body_.results.size() + partial];
  }

  ClusterOperands operands_;
  const ClusterBody& body_;  // of the operands
  const Loops& loops_;
  ChunkMover mover_;
  std::vector<bool> has_columns_;  // by value
  std::vector<int> levels_;        // by value
  int last_level_ = 0;
};

}  // namespace ft::cpu
