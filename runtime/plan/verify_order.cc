// The order of instructions, by vector clocks: clock[t] of an instruction is one more than the index of the
// last instruction of stream t that is certain to have finished when it begins.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/verify_parts.h"
#include "runtime/plan/verify_place.h"
#include "runtime/plan/verify_transfers.h"

namespace ft {
namespace {

constexpr int kStreams = proto::Stream_ARRAYSIZE;
using Clock = std::array<uint32_t, kStreams>;

void Join(Clock& clock, const Clock& other) {
  for (int t = 0; t < kStreams; ++t) clock[t] = std::max(clock[t], other[t]);
}

// When each stream touched a buffer last. Numbers are indices + 1, 0: never.
struct Touched {
  Clock access = {};
  Clock write = {};
};

class ProgramOrder {
 public:
  ProgramOrder(const proto::Plan& plan, int program)
      : plan_(plan),
        program_(program),
        instructions_(plan.programs(program).instructions()),
        touched_(plan.buffers_size()),
        first_use_(plan.buffers_size(), 0) {}

  absl::Status Verify() {
    ComputeClocks();
    FT_RETURN_IF_ERROR(FindWaits());
    for (now_ = 0; now_ < instructions_.size(); ++now_)
      FT_RETURN_IF_ERROR(VerifyAccesses(instructions_[now_]));
    for (const proto::MemorySpace space : {proto::DEVICE, proto::HOST})
      FT_RETURN_IF_ERROR(VerifyReuse(space));
    FT_RETURN_IF_ERROR(VerifyBegins());
    for (int i = 0; i < instructions_.size(); ++i) FT_RETURN_IF_ERROR(VerifyLivesUntilWait(i));
    return absl::OkStatus();
  }

 private:
  template <typename... Parts>
  absl::Status Invalid(int instruction, const Parts&... parts) const {
    return Place{.plan = plan_, .program = program_, .instruction = instruction}.Invalid(parts...);
  }

  std::string Title(uint32_t index_plus_one) const {
    return absl::StrCat("instruction ", index_plus_one - 1, " (",
                        InstructionTitle(plan_, instructions_[index_plus_one - 1]), ")");
  }

  void ComputeClocks() {
    std::array<Clock, kStreams> streams = {};
    clocks_.resize(instructions_.size());
    for (int i = 0; i < instructions_.size(); ++i) {
      const proto::Instruction& instruction = instructions_[i];
      Clock& clock = streams[instruction.stream()];
      for (uint32_t earlier : instruction.after()) {
        Join(clock, clocks_[earlier]);
        uint32_t& seen = clock[instructions_[earlier].stream()];
        seen = std::max(seen, earlier + 1);
      }
      clocks_[i] = clock;
      clock[instruction.stream()] = i + 1;
    }
  }

  // What runs beside compute begins after all that stands before it there
  // (docs/decisions/live-ranges-across-streams.md).
  absl::Status VerifyBegins() const {
    uint32_t last = 0;
    for (int i = 0; i < instructions_.size(); ++i) {
      const proto::Instruction& instruction = instructions_[i];
      if (RunsBeside(instruction) && clocks_[i][proto::COMPUTE] < last)
        return Invalid(i, "it may begin before ", Title(last),
                       ", which stands before it on compute, is done");
      // A release runs nothing.
      if (instruction.stream() == proto::COMPUTE && instruction.opcode() != proto::RELEASE) last = i + 1;
    }
    return absl::OkStatus();
  }

  // Compute waits for all that runs beside it, at the latest by waiting for something later of its stream.
  absl::Status FindWaits() {
    waits_.assign(instructions_.size(), -1);
    std::array<int, kStreams> next = {};  // the first of the stream that compute has not waited for
    for (int wait = 0; wait < instructions_.size(); ++wait) {
      if (instructions_[wait].stream() != proto::COMPUTE) continue;
      for (int t = 0; t < kStreams; ++t) {
        for (; next[t] < static_cast<int>(clocks_[wait][t]); ++next[t]) {
          if (instructions_[next[t]].stream() == t) waits_[next[t]] = wait;
        }
      }
    }
    for (int i = 0; i < instructions_.size(); ++i) {
      if (RunsBeside(instructions_[i]) && waits_[i] < 0) return Invalid(i, "nothing waits for it");
    }
    return absl::OkStatus();
  }

  // What is touched beside compute lives until compute has waited for it.
  absl::Status VerifyLivesUntilWait(int beside) const {
    if (!RunsBeside(instructions_[beside])) return absl::OkStatus();
    const auto verify = [&](const proto::Operand& operand) {
      if (operand.buffer_plus_one() == 0) return absl::OkStatus();
      const proto::Buffer& buffer = plan_.buffers(operand.buffer_plus_one() - 1);
      const int wait = waits_[beside];
      if (buffer.persistent() || buffer.last() >= static_cast<uint32_t>(wait)) return absl::OkStatus();
      return Invalid(beside, "buffer ", BufferName(plan_, operand.buffer_plus_one() - 1),
                     " ends its life at instruction ", buffer.last(), ", before ", Title(wait + 1),
                     " waits for it");
    };
    for (const proto::Operand& operand : instructions_[beside].in()) FT_RETURN_IF_ERROR(verify(operand));
    for (const proto::Operand& operand : instructions_[beside].out()) FT_RETURN_IF_ERROR(verify(operand));
    return absl::OkStatus();
  }

  absl::Status VerifyAccesses(const proto::Instruction& instruction) {
    const bool in_place = instruction.opcode() == proto::ALL_REDUCE;
    for (const proto::Operand& operand : instruction.in())
      FT_RETURN_IF_ERROR(VerifyAccess(instruction, operand, in_place));
    FT_RETURN_IF_ERROR(VerifyAccess(instruction, instruction.workspace(), true));
    for (const proto::Operand& operand : instruction.out())
      FT_RETURN_IF_ERROR(VerifyAccess(instruction, operand, true));
    return absl::OkStatus();
  }

  absl::Status VerifyAccess(const proto::Instruction& instruction, const proto::Operand& operand,
                            bool writes) {
    if (operand.buffer_plus_one() == 0) return absl::OkStatus();
    const uint32_t buffer = operand.buffer_plus_one() - 1;
    Touched& touched = touched_[buffer];
    FT_RETURN_IF_ERROR(writes ? VerifyOrdered(buffer, touched.access, "used")
                              : VerifyOrdered(buffer, touched.write, "written"));
    touched.access[instruction.stream()] = now_ + 1;
    if (writes) touched.write[instruction.stream()] = now_ + 1;
    if (first_use_[buffer] == 0) first_use_[buffer] = now_ + 1;
    return absl::OkStatus();
  }

  // Instructions of other streams at which the buffer was touched must have finished before this one.
  absl::Status VerifyOrdered(uint32_t buffer, const Clock& touched, const char* how) const {
    const int own = instructions_[now_].stream();
    for (int t = 0; t < kStreams; ++t) {
      if (t == own || touched[t] <= clocks_[now_][t]) continue;
      return Invalid(now_, "buffer ", BufferName(plan_, buffer), " may still be ", how, " by ",
                     Title(touched[t]), " on another stream; nothing orders the two");
    }
    return absl::OkStatus();
  }

  std::vector<uint32_t> BuffersOf(proto::MemorySpace space) const {
    std::vector<uint32_t> buffers;
    for (int b = 0; b < plan_.buffers_size(); ++b) {
      const proto::Buffer& buffer = plan_.buffers(b);
      if (!buffer.persistent() && buffer.program() == static_cast<uint32_t>(program_) &&
          buffer.space() == space)
        buffers.push_back(b);
    }
    return buffers;
  }

  // Buffers that are never live together may share bytes: all that touches the earlier one must have finished
  // before the later one is first touched. By sweeping first uses in order of their instruction, with what
  // the streams did to buffers whose life has ended by then.
  absl::Status VerifyReuse(proto::MemorySpace space) const {
    std::vector<uint32_t> by_first = BuffersOf(space), by_last = by_first;
    std::stable_sort(by_first.begin(), by_first.end(), [&](uint32_t a, uint32_t b) {
      return plan_.buffers(a).first() < plan_.buffers(b).first();
    });
    std::stable_sort(by_last.begin(), by_last.end(), [&](uint32_t a, uint32_t b) {
      return plan_.buffers(a).last() < plan_.buffers(b).last();
    });
    Clock ended = {};
    std::array<uint32_t, kStreams> culprit = {};
    size_t next = 0;
    for (uint32_t buffer : by_first) {
      for (; next < by_last.size() && plan_.buffers(by_last[next]).last() < plan_.buffers(buffer).first();
           ++next) {
        for (int t = 0; t < kStreams; ++t) {
          const uint32_t last = touched_[by_last[next]].access[t];
          if (last > ended[t]) ended[t] = last, culprit[t] = by_last[next];
        }
      }
      if (first_use_[buffer] == 0) continue;
      const int use = static_cast<int>(first_use_[buffer] - 1);
      for (int t = 0; t < kStreams; ++t) {
        if (t == instructions_[use].stream() || ended[t] <= clocks_[use][t]) continue;
        return Invalid(use, "buffer ", BufferName(plan_, buffer), " may lie where ",
                       BufferName(plan_, culprit[t]), " did, which may still be used by ", Title(ended[t]),
                       " on another stream; nothing orders the two");
      }
    }
    return absl::OkStatus();
  }

  const proto::Plan& plan_;
  const int program_;
  const google::protobuf::RepeatedPtrField<proto::Instruction>& instructions_;
  std::vector<Touched> touched_;
  std::vector<uint32_t> first_use_;
  std::vector<Clock> clocks_;
  std::vector<int> waits_;  // of what runs beside compute: the instruction on compute that waits for it
  int now_ = 0;
};

}  // namespace

absl::Status VerifyOrder(const proto::Plan& plan) {
  for (int p = 0; p < plan.programs_size(); ++p) FT_RETURN_IF_ERROR(ProgramOrder(plan, p).Verify());
  return absl::OkStatus();
}

}  // namespace ft
