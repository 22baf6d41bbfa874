#include "runtime/cost/memory_traffic.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "runtime/cost/kernel_class.h"
#include "runtime/plan/operand_extent.h"
#include "runtime/plan/rank_share.h"

namespace ft {
namespace {

// Not what lies between such ops: what was generated, and what reduces or moves elements.
bool IsOp(const proto::Instruction& instruction) {
  if (instruction.opcode() != proto::KERNEL) return true;
  switch (KernelClassOf(instruction.kernel())) {
    case KernelClass::kProduct:
    case KernelClass::kAttention:
    case KernelClass::kHead:
    case KernelClass::kLookUp:
      return true;
    case KernelClass::kUpdate:
      return instruction.kernel() == "update";  // not what computes its scalars
    case KernelClass::kGenerated:
    case KernelClass::kReduction:
    case KernelClass::kMemory:
      return false;
  }
  return false;
}

// Bytes of a buffer that have one story.
struct Segment {
  uint64_t end = 0;
  bool by_op = true;  // who wrote it; what was there before the program, ops of others have
  bool op_reads = false;
  bool other_reads = false;
};

// A buffer, as segments by their begin. What is in none was neither written nor read yet.
class Contents {
 public:
  void Read(uint64_t begin, uint64_t end, bool is_op) {
    Cut(begin), Cut(end);
    for (uint64_t at = begin; at < end;) {
      auto segment = segments_.lower_bound(at);
      if (segment == segments_.end() || segment->first > at) {
        const uint64_t stop = segment == segments_.end() ? end : std::min(end, segment->first);
        segment = segments_.emplace_hint(segment, at, Segment{.end = stop});
      }
      (is_op ? segment->second.op_reads : segment->second.other_reads) = true;
      at = segment->second.end;
    }
  }

  // Returns what of the floor is known now.
  uint64_t Write(uint64_t begin, uint64_t end, bool is_op) {
    Cut(begin), Cut(end);
    const auto first = segments_.lower_bound(begin), last = segments_.lower_bound(end);
    const uint64_t floor = Floor(first, last);
    segments_.erase(first, last);
    if (begin < end) segments_[begin] = {.end = end, .by_op = is_op};
    return floor;
  }

  // When the program is over; what is kept has to be there.
  uint64_t Rest(bool is_kept) const {
    uint64_t bytes = Floor(segments_.begin(), segments_.end());
    for (const auto& [begin, segment] : segments_)
      if (is_kept && !segment.by_op && !segment.op_reads) bytes += segment.end - begin;
    return bytes;
  }

 private:
  using Iterator = std::map<uint64_t, Segment>::const_iterator;

  void Cut(uint64_t at) {
    auto behind = segments_.lower_bound(at);
    if (behind == segments_.begin()) return;
    const auto before = std::prev(behind);
    if (before->second.end <= at) return;
    segments_.emplace_hint(behind, at, before->second);
    before->second.end = at;
  }

  static uint64_t Floor(Iterator begin, Iterator end) {
    uint64_t bytes = 0;
    for (; begin != end; ++begin) {
      const Segment& segment = begin->second;
      const bool counts = segment.by_op ? segment.other_reads && !segment.op_reads : segment.op_reads;
      if (counts) bytes += segment.end - begin->first;
    }
    return bytes;
  }

  std::map<uint64_t, Segment> segments_;
};

class Reader {
 public:
  Reader(const proto::Plan& plan, const Mesh& mesh)
      : plan_(plan), mesh_(mesh), buffers_(plan.buffers_size()) {}

  void Add(const proto::Instruction& instruction) {
    const bool moves = instruction.opcode() != proto::WAIT && instruction.opcode() != proto::RELEASE;
    if (!moves || instruction.stream() == proto::HOST_COMPUTE) return;
    const bool is_op = IsOp(instruction);
    const bool in_place = instruction.opcode() == proto::ALL_REDUCE && instruction.out().empty();
    uint64_t bytes = 0;
    for (const proto::Operand& operand : instruction.in()) {
      if (const uint64_t size = Bytes(operand); size > 0) {
        BufferOf(operand).Read(operand.offset(), operand.offset() + size, is_op);
        bytes += size;
      }
    }
    for (const proto::Operand& operand : in_place ? instruction.in() : instruction.out()) {
      if (const uint64_t size = Bytes(operand); size > 0) {
        traffic_.floor += BufferOf(operand).Write(operand.offset(), operand.offset() + size, is_op);
        bytes += size;
      }
    }
    // Some kernels touch a part of their operands.
    if (instruction.opcode() == proto::KERNEL)
      bytes = static_cast<uint64_t>(ShareOfRank(plan_, mesh_, instruction) *
                                    static_cast<double>(instruction.bytes()));
    (is_op ? traffic_.ops : traffic_.between) += bytes;
  }

  MemoryTraffic Take() {
    traffic_.floor += traffic_.ops;
    for (size_t b = 0; b < buffers_.size(); ++b)
      traffic_.floor += buffers_[b].Rest(plan_.buffers(static_cast<int>(b)).persistent());
    return traffic_;
  }

 private:
  // Of an operand in the memory of the device.
  uint64_t Bytes(const proto::Operand& operand) const {
    if (operand.buffer_plus_one() == 0) return 0;
    if (plan_.buffers(static_cast<int>(operand.buffer_plus_one()) - 1).space() == proto::HOST) return 0;
    return OperandBytes(plan_, operand, static_cast<uint64_t>(mesh_.shard));
  }
  Contents& BufferOf(const proto::Operand& operand) { return buffers_[operand.buffer_plus_one() - 1]; }

  const proto::Plan& plan_;
  const Mesh& mesh_;
  std::vector<Contents> buffers_;
  MemoryTraffic traffic_;
};

}  // namespace

MemoryTraffic MemoryTrafficOf(const proto::Plan& plan, const proto::Program& program, const Mesh& mesh) {
  Reader reader(plan, mesh);
  for (const proto::Instruction& instruction : program.instructions()) reader.Add(instruction);
  return reader.Take();
}

}  // namespace ft
