// The order of instructions, by vector clocks: clock[t] of an instruction is one more than the index of the
// last instruction of stream t that is certain to have finished when it begins.
#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/interval_set.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/size_expr.h"
#include "runtime/plan/verify_phases.h"

namespace ft {
namespace {

constexpr int kStreams = proto::Stream_ARRAYSIZE;
using Clock = std::array<uint32_t, kStreams>;

// Everything known about a buffer at one point of a program. Numbers are indices + 1, 0: never.
struct BufferState {
  Clock last_access = {};
  Clock last_write = {};
  IntervalSet written;
};

class ProgramOrder {
 public:
  ProgramOrder(const proto::Plan& plan, int program)
      : plan_(plan),
        program_(program),
        instructions_(plan.programs(program).instructions()),
        states_(plan.buffers_size()) {}

  absl::Status Verify() {
    ComputeClocks();
    FT_RETURN_IF_ERROR(VerifyWaited());
    for (now_ = 0; now_ < instructions_.size(); ++now_)
      FT_RETURN_IF_ERROR(VerifyAccesses(instructions_[now_]));
    return VerifyReuse();
  }

 private:
  template <typename... Parts>
  absl::Status Invalid(int instruction, const Parts&... parts) const {
    return absl::InvalidArgumentError(
        absl::StrCat("invalid plan: ", InstructionPlace(plan_, program_, instruction), ": ", parts...));
  }

  std::string Title(uint32_t index_plus_one) const {
    return absl::StrCat("instruction ", index_plus_one - 1, " (",
                        InstructionTitle(plan_, instructions_[index_plus_one - 1]), ")");
  }

  static void Join(Clock& clock, const Clock& other) {
    for (int t = 0; t < kStreams; ++t) clock[t] = std::max(clock[t], other[t]);
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
    final_ = streams;
  }

  // A collective that no other stream ever waits for, not even by waiting for a later one of its stream.
  absl::Status VerifyWaited() const {
    for (int i = 0; i < instructions_.size(); ++i) {
      const proto::Opcode opcode = instructions_[i].opcode();
      if (opcode != proto::ALL_GATHER && opcode != proto::REDUCE_SCATTER && opcode != proto::ALL_REDUCE)
        continue;
      const int stream = instructions_[i].stream();
      uint32_t seen = 0;
      for (int t = 0; t < kStreams; ++t) {
        if (t != stream) seen = std::max(seen, final_[t][stream]);
      }
      if (seen < static_cast<uint32_t>(i) + 1) return Invalid(i, "nothing waits for it");
    }
    return absl::OkStatus();
  }

  // Bytes of an operand; all that there are, for a whole buffer whose size depends on the mesh.
  Interval Extent(const proto::Operand& operand) const {
    if (operand.whole()) {
      const proto::SizeExpr& size = plan_.buffers(operand.buffer_plus_one() - 1).size();
      const bool fixed = size.kind() == proto::SizeExpr::CONSTANT || !Shards(plan_);
      return {0, fixed ? SizeInBytes(plan_, size, 1) : Interval::kEverything};
    }
    uint64_t bytes = SizeOf(static_cast<DType>(operand.dtype()));
    for (uint64_t extent : operand.shape()) bytes *= extent;
    return {operand.offset(), operand.offset() + bytes};
  }

  absl::Status VerifyAccesses(const proto::Instruction& instruction) {
    const bool in_place = instruction.opcode() == proto::ALL_REDUCE;
    for (const proto::Operand& operand : instruction.in())
      FT_RETURN_IF_ERROR(VerifyRead(instruction, operand));
    if (in_place) FT_RETURN_IF_ERROR(VerifyWrite(instruction, instruction.in(0)));
    FT_RETURN_IF_ERROR(VerifyWrite(instruction, instruction.workspace()));
    for (const proto::Operand& operand : instruction.out())
      FT_RETURN_IF_ERROR(VerifyWrite(instruction, operand));
    return absl::OkStatus();
  }

  absl::Status VerifyRead(const proto::Instruction& instruction, const proto::Operand& operand) {
    if (operand.buffer_plus_one() == 0) return absl::OkStatus();
    const uint32_t buffer = operand.buffer_plus_one() - 1;
    BufferState& state = states_[buffer];
    if (!plan_.buffers(buffer).persistent() && !state.written.Contains(Extent(operand))) {
      return Invalid(now_, "it reads buffer ", BufferName(plan_, buffer), " where nothing has written it");
    }
    FT_RETURN_IF_ERROR(VerifyOrdered(buffer, state.last_write, "written"));
    Touch(state.last_access, instruction);
    return absl::OkStatus();
  }

  absl::Status VerifyWrite(const proto::Instruction& instruction, const proto::Operand& operand) {
    if (operand.buffer_plus_one() == 0) return absl::OkStatus();
    const uint32_t buffer = operand.buffer_plus_one() - 1;
    BufferState& state = states_[buffer];
    FT_RETURN_IF_ERROR(VerifyOrdered(buffer, state.last_access, "used"));
    Touch(state.last_access, instruction);
    Touch(state.last_write, instruction);
    if (!plan_.buffers(buffer).persistent()) state.written.Add(Extent(operand));
    return absl::OkStatus();
  }

  void Touch(Clock& clock, const proto::Instruction& instruction) { clock[instruction.stream()] = now_ + 1; }

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

  // Buffers that are never live together may share bytes: all that touches the earlier one must have finished
  // before the later one is first touched. By sweeping first uses in order of their instruction, with what
  // the streams did to buffers whose life has ended by then.
  absl::Status VerifyReuse() {
    std::vector<uint32_t> by_first, by_last;
    for (int b = 0; b < plan_.buffers_size(); ++b) {
      if (!plan_.buffers(b).persistent() && plan_.buffers(b).program() == static_cast<uint32_t>(program_))
        by_first.push_back(b);
    }
    by_last = by_first;
    std::stable_sort(by_first.begin(), by_first.end(), [&](uint32_t a, uint32_t b) {
      return plan_.buffers(a).first() < plan_.buffers(b).first();
    });
    std::stable_sort(by_last.begin(), by_last.end(), [&](uint32_t a, uint32_t b) {
      return plan_.buffers(a).last() < plan_.buffers(b).last();
    });
    const std::vector<uint32_t> first_use = FirstUses();
    Clock ended = {};
    std::array<uint32_t, kStreams> culprit = {};
    size_t next = 0;
    for (uint32_t buffer : by_first) {
      for (; next < by_last.size() && plan_.buffers(by_last[next]).last() < plan_.buffers(buffer).first();
           ++next) {
        for (int t = 0; t < kStreams; ++t) {
          const uint32_t last = states_[by_last[next]].last_access[t];
          if (last > ended[t]) ended[t] = last, culprit[t] = by_last[next];
        }
      }
      if (first_use[buffer] == 0) continue;
      const int use = static_cast<int>(first_use[buffer] - 1);
      for (int t = 0; t < kStreams; ++t) {
        if (t == instructions_[use].stream() || ended[t] <= clocks_[use][t]) continue;
        return Invalid(use, "buffer ", BufferName(plan_, buffer), " may lie where ",
                       BufferName(plan_, culprit[t]), " did, which may still be used by ", Title(ended[t]),
                       " on another stream; nothing orders the two");
      }
    }
    return absl::OkStatus();
  }

  std::vector<uint32_t> FirstUses() const {
    std::vector<uint32_t> first(plan_.buffers_size(), 0);
    const auto use = [&](const proto::Operand& operand, int i) {
      if (operand.buffer_plus_one() == 0) return;
      uint32_t& at = first[operand.buffer_plus_one() - 1];
      if (at == 0) at = i + 1;
    };
    for (int i = 0; i < instructions_.size(); ++i) {
      for (const proto::Operand& operand : instructions_[i].in()) use(operand, i);
      for (const proto::Operand& operand : instructions_[i].out()) use(operand, i);
      use(instructions_[i].workspace(), i);
    }
    return first;
  }

  const proto::Plan& plan_;
  const int program_;
  const google::protobuf::RepeatedPtrField<proto::Instruction>& instructions_;
  std::vector<BufferState> states_;
  std::vector<Clock> clocks_;
  std::array<Clock, kStreams> final_ = {};
  int now_ = 0;
};

}  // namespace

absl::Status VerifyOrder(const proto::Plan& plan) {
  for (int p = 0; p < plan.programs_size(); ++p) FT_RETURN_IF_ERROR(ProgramOrder(plan, p).Verify());
  return absl::OkStatus();
}

}  // namespace ft
