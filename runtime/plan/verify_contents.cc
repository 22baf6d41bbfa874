// What buffers hold: written before it is read, inside a program and from one program to the next. In the
// order of the list, which VerifyOrder shows to be the order in which things happen to a buffer.
#include <algorithm>
#include <string_view>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/buffer_contents.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/unit_parameters.h"
#include "runtime/plan/verify_parts.h"
#include "runtime/plan/verify_place.h"

namespace ft {
namespace {

constexpr char kInit[] = "init";

// What a program does to a persistent buffer. Instructions are indices + 1, 0: none.
struct Use {
  int needs_whole = 0;   // reads more than the own slice, as it was before the program
  int reads_before = 0;  // reads anything as it was before the program
  int leaves_own = 0;    // wrote the own slice and left the rest stale
  bool written = false;
};

class ProgramContents {
 public:
  ProgramContents(const proto::Plan& plan, const UnitParameters& parameters, int program,
                  std::vector<Use>& uses)
      : plan_(plan),
        parameters_(parameters),
        program_(program),
        uses_(uses),
        now_holds_(plan.buffers_size()),
        written_here_(plan.buffers_size()) {
    for (int b = 0; b < plan.buffers_size(); ++b) {
      if (plan.buffers(b).persistent()) now_holds_[b] = BufferContents::Everything();
    }
    for (const proto::Port& port : plan.programs(program).inputs()) Write(port.operand());
  }

  absl::Status Verify() {
    const proto::Program& program = plan_.programs(program_);
    for (now_ = 0; now_ < program.instructions_size(); ++now_)
      FT_RETURN_IF_ERROR(VerifyInstruction(program.instructions(now_)));
    for (const proto::Port& port : program.outputs()) {
      if (written_here_[port.operand().buffer_plus_one() - 1].Holds(RegionOf(plan_, port.operand())))
        continue;
      return Place{.plan = plan_, .program = program_, .port = &port}.Invalid("nothing writes it");
    }
    return absl::OkStatus();
  }

 private:
  absl::Status VerifyInstruction(const proto::Instruction& instruction) {
    for (const proto::Operand& operand : instruction.in()) FT_RETURN_IF_ERROR(Read(operand));
    for (const proto::Operand& operand : instruction.out()) {
      if (Updates(instruction, operand) || KeepsRest(instruction, operand)) FT_RETURN_IF_ERROR(Read(operand));
    }
    if (instruction.opcode() == proto::ALL_REDUCE) {
      for (const proto::Operand& operand : instruction.in()) Write(operand);
    }
    for (const proto::Operand& operand : instruction.out()) {
      if (!WritePadding(instruction, operand)) Write(operand);
    }
    return absl::OkStatus();
  }

  // fp32 weights and moments are updated in place by the optimizer's kernels: these read what they write.
  bool Updates(const proto::Instruction& instruction, const proto::Operand& operand) const {
    if (instruction.opcode() != proto::KERNEL || instruction.phase() != "optimizer" ||
        operand.dtype() != proto::F32 || operand.buffer_plus_one() == 0) {
      return false;
    }
    const proto::MemoryClass kind = plan_.buffers(operand.buffer_plus_one() - 1).class_();
    return kind == proto::PARAMETERS || kind == proto::OPTIMIZER_STATE;
  }

  // What moves parameters into a slice leaves what lies between them.
  bool KeepsRest(const proto::Instruction& instruction, const proto::Operand& operand) const {
    return instruction.opcode() == proto::ALL_TO_ALL && operand.whole();
  }

  // A kernel that fills what lies between parameters writes nothing else of a flat buffer. Returns whether
  // this is one.
  bool WritePadding(const proto::Instruction& instruction, const proto::Operand& operand) {
    if (instruction.kernel() != kPaddingKernel || operand.buffer_plus_one() == 0) return false;
    const uint64_t element = SizeOf(static_cast<DType>(operand.dtype()));
    const uint32_t buffer = operand.buffer_plus_one() - 1;
    const Region whole = RegionOf(plan_, operand);
    uint64_t begin = 0;
    const auto fill = [&](uint64_t end) {
      end = std::min(end, whole.bytes.end);
      if (begin < end) Record(buffer, {.own = false, .bytes = {begin, end}});
    };
    for (const ParameterRange& parameter : parameters_[plan_.buffers(buffer).size().unit()]) {
      fill(static_cast<uint64_t>(parameter.begin) * element);
      begin = static_cast<uint64_t>(parameter.end) * element;
    }
    fill(whole.bytes.end);
    return true;
  }

  absl::Status Read(const proto::Operand& operand) {
    if (operand.buffer_plus_one() == 0) return absl::OkStatus();
    const uint32_t buffer = operand.buffer_plus_one() - 1;
    const Region region = RegionOf(plan_, operand);
    if (plan_.buffers(buffer).persistent() && !written_here_[buffer].Holds(region)) {
      uses_[buffer].reads_before = FirstOf(uses_[buffer].reads_before);
      if (!region.own) uses_[buffer].needs_whole = FirstOf(uses_[buffer].needs_whole);
    }
    if (now_holds_[buffer].Holds(region)) return absl::OkStatus();
    const Place place{.plan = plan_, .program = program_, .instruction = now_};
    if (now_holds_[buffer].HoldsOwnOnly())
      return place.Invalid("it reads buffer ", BufferName(plan_, buffer),
                           ", of which only the own slice is up to date");
    return place.Invalid("it reads buffer ", BufferName(plan_, buffer), " where nothing has written it");
  }

  int FirstOf(int seen) const { return seen == 0 ? now_ + 1 : seen; }

  void Write(const proto::Operand& operand) {
    if (operand.buffer_plus_one() != 0) Record(operand.buffer_plus_one() - 1, RegionOf(plan_, operand));
  }

  void Record(uint32_t buffer, const Region& region) {
    now_holds_[buffer].Write(region);
    written_here_[buffer].Write(region);
    if (!plan_.buffers(buffer).persistent()) return;
    uses_[buffer].written = true;
    uses_[buffer].leaves_own = now_holds_[buffer].HoldsOwnOnly() ? now_ + 1 : 0;
  }

  const proto::Plan& plan_;
  const UnitParameters& parameters_;  // by unit
  const int program_;
  std::vector<Use>& uses_;
  std::vector<BufferContents> now_holds_;
  std::vector<BufferContents> written_here_;
  int now_ = 0;
};

int FindProgram(const proto::Plan& plan, std::string_view name) {
  for (int p = 0; p < plan.programs_size(); ++p) {
    if (plan.programs(p).name() == name) return p;
  }
  return -1;
}

// The arena is zero from the start, which is how moments and sums over micro-steps begin. Weights do not.
std::vector<bool> HoldWeights(const proto::Plan& plan) {
  std::vector<bool> weights(plan.buffers_size(), false);
  for (const proto::Plan::UnitState& state : plan.unit_states())
    weights[state.buffer()] = state.role() == "parameters" || state.role() == "master";
  return weights;
}

// Programs follow each other: init, then the others in any order.
absl::Status VerifyHandover(const proto::Plan& plan, const std::vector<std::vector<Use>>& uses) {
  const int init = FindProgram(plan, kInit);
  const std::vector<bool> weights = HoldWeights(plan);
  for (int b = 0; b < plan.buffers_size(); ++b) {
    if (!plan.buffers(b).persistent()) continue;
    const bool written =
        weights[b] ? init < 0 || uses[init][b].written
                   : std::any_of(uses.begin(), uses.end(), [&](const auto& all) { return all[b].written; });
    for (int reader = 0; reader < plan.programs_size(); ++reader) {
      const Use& use = uses[reader][b];
      if (use.reads_before != 0 && (!written || (weights[b] && reader == init))) {
        const Place place{.plan = plan, .program = reader, .instruction = use.reads_before - 1};
        return place.Invalid("it reads buffer ", BufferName(plan, b), ", which ",
                             weights[b] ? "program init does not write" : "no program and no input writes");
      }
      for (int writer = 0; writer < plan.programs_size() && use.needs_whole != 0; ++writer) {
        if (uses[writer][b].leaves_own == 0 || reader == init) continue;
        const Place place{.plan = plan, .program = reader, .instruction = use.needs_whole - 1};
        return place.Invalid("it reads all of buffer ", BufferName(plan, b),
                             ", of which only the own slice is up to date "
                             "after ",
                             InstructionPlace(plan, writer, uses[writer][b].leaves_own - 1));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyContents(const proto::Plan& plan) {
  std::vector<std::vector<Use>> uses(plan.programs_size(), std::vector<Use>(plan.buffers_size()));
  const UnitParameters parameters = ParametersOfUnits(plan);
  for (int p = 0; p < plan.programs_size(); ++p)
    FT_RETURN_IF_ERROR(ProgramContents(plan, parameters, p, uses[p]).Verify());
  return VerifyHandover(plan, uses);
}

}  // namespace ft
