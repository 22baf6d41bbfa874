// Units, parameters, states, buffers, programs and the plan's own numbers.
#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/checked.h"
#include "runtime/base/state_shape.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/inputs.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/plan_clusters.h"
#include "runtime/plan/plan_facts.h"
#include "runtime/plan/size_expr.h"
#include "runtime/plan/target.h"
#include "runtime/plan/unit_parameters.h"
#include "runtime/plan/verify_parts.h"

namespace ft {
namespace {

constexpr uint64_t kMaxElements = kMaxUnitElements;
constexpr uint64_t kMaxBlock = uint64_t{1} << 20;
constexpr uint64_t kMaxBufferBytes = uint64_t{1} << 56;
constexpr uint64_t kMaxBytesPerElement = 64;
constexpr uint64_t kMaxSequence = uint64_t{1} << 31;
constexpr uint32_t kMaxRanks = uint32_t{1} << 24;
constexpr uint32_t kMaxShares = uint32_t{1} << 20;
constexpr int kMaxPrograms = 64;
constexpr int kMaxParameterRank = 8;

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("invalid plan: ", parts...));
}

// Estimates and defaults; a plan made by hand needs neither.
absl::Status VerifyCompiledFor(const proto::Plan& plan) {
  if (plan.has_target()) {
    const absl::Status status = VerifyTarget(plan.target());
    if (!status.ok()) return Invalid(status.message());
  }
  const proto::Plan::Ranks& ranks = plan.compiled_for();
  const uint64_t on_mesh = uint64_t{ranks.replica()} * ranks.shard();
  if (ranks.world_size() > kMaxRanks || (on_mesh != 0 && on_mesh != ranks.world_size()) ||
      (on_mesh == 0 && ranks.replica() + ranks.shard() != 0)) {
    return Invalid("it was compiled for ", ranks.world_size(), " ranks on a mesh of ", ranks.replica(), " x ",
                   ranks.shard());
  }
  return absl::OkStatus();
}

absl::Status VerifyClusters(const proto::Plan& plan) {
  const auto clusters = ClustersOf(plan);
  return clusters.ok() ? absl::OkStatus() : Invalid(clusters.status().message());
}

absl::Status VerifyFacts(const proto::Plan& plan) {
  const auto facts = FactsOf(plan);
  return facts.ok() ? absl::OkStatus() : Invalid(facts.status().message());
}

absl::Status VerifyNumbers(const proto::Plan& plan) {
  const uint64_t block = plan.block_elements();
  if (block == 0 || block > kMaxBlock) return Invalid("a block of ", block, " elements is not possible");
  if (plan.batch() == 0 || plan.batch() >= kMaxSequence || plan.seq_len() == 0 ||
      plan.seq_len() >= kMaxSequence) {
    return Invalid("a batch of ", plan.batch(), " sequences of ", plan.seq_len(), " tokens is not possible");
  }
  if ((plan.vocab_size() == 0 && TakesTokens(plan)) || plan.vocab_size() >= kMaxSequence) {
    return Invalid("a vocabulary of ", plan.vocab_size(), " is not possible");
  }
  if (plan.programs_size() > kMaxPrograms) return Invalid("it has ", plan.programs_size(), " programs");
  return VerifyCompiledFor(plan);
}

absl::Status VerifyUnits(const proto::Plan& plan) {
  for (const proto::Unit& unit : plan.units()) {
    if (unit.elements() == 0 || unit.elements() > kMaxElements ||
        unit.elements() % plan.block_elements() != 0) {
      return Invalid("unit '", unit.name(), "' has ", unit.elements(),
                     " elements, not a multiple of the block of ", plan.block_elements());
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyShape(const proto::Parameter& parameter) {
  uint64_t elements = 1;
  if (parameter.shape_size() > kMaxParameterRank)
    return Invalid("parameter '", parameter.name(), "' has too many dimensions");
  for (uint64_t extent : parameter.shape()) {
    if (extent == 0 || extent > kMaxElements || elements > kMaxElements / extent) {
      return Invalid("parameter '", parameter.name(), "' has a dimension of ", extent);
    }
    elements *= extent;
  }
  return absl::OkStatus();
}

absl::Status VerifyParameters(const proto::Plan& plan) {
  for (const proto::Parameter& parameter : plan.parameters()) {
    if (parameter.unit() >= static_cast<uint32_t>(plan.units_size())) {
      return Invalid("parameter '", parameter.name(), "' is in unit ", parameter.unit(), " of ",
                     plan.units_size());
    }
    FT_RETURN_IF_ERROR(VerifyShape(parameter));
    const uint64_t room = plan.units(parameter.unit()).elements();
    if (parameter.offset() > room || ElementsOf(parameter) > room - parameter.offset()) {
      return Invalid("parameter '", parameter.name(), "' leaves its unit '",
                     plan.units(parameter.unit()).name(), "'");
    }
    if (parameter.offset() % plan.block_elements() != 0) {
      return Invalid("parameter '", parameter.name(), "' begins at element ", parameter.offset(),
                     ", inside a block");
    }
  }
  for (const std::vector<ParameterRange>& unit : ParametersOfUnits(plan)) {
    for (size_t k = 1; k < unit.size(); ++k) {
      if (unit[k - 1].end <= unit[k].begin) continue;
      return Invalid("parameters '", plan.parameters(static_cast<int>(unit[k - 1].number)).name(), "' and '",
                     plan.parameters(static_cast<int>(unit[k].number)).name(), "' overlap");
    }
  }
  return absl::OkStatus();
}

absl::Status VerifySize(const proto::Plan& plan, uint32_t index) {
  const proto::SizeExpr& size = plan.buffers(index).size();
  if (!proto::SizeExpr::Kind_IsValid(size.kind()))
    return Invalid("buffer ", BufferName(plan, index), " has a size of an unknown kind");
  const bool constant = !IsOfUnit(size);
  if (size.value() > (constant ? kMaxBufferBytes : kMaxBytesPerElement) || (!constant && size.value() == 0)) {
    return Invalid("buffer ", BufferName(plan, index), " has an impossible size");
  }
  if (!constant && size.unit() >= static_cast<uint32_t>(plan.units_size())) {
    return Invalid("buffer ", BufferName(plan, index), " is sized by unit ", size.unit(), " of ",
                   plan.units_size());
  }
  if (size.kind() != proto::SizeExpr::SHARE) return absl::OkStatus();
  const proto::Buffer& buffer = plan.buffers(index);
  if (buffer.persistent() || buffer.space() != proto::DEVICE)
    return Invalid("buffer ", BufferName(plan, index),
                   ", which not every rank has, persists or lies in host memory");
  if (size.index() >= size.count() || size.count() > kMaxShares || size.value() == 0)
    return Invalid("buffer ", BufferName(plan, index), " is for number ", size.index(), " of ", size.count());
  return absl::OkStatus();
}

// A size of its own on CUDA devices.
absl::Status VerifyCudaBytes(const proto::Plan& plan, uint32_t index) {
  const proto::Buffer& buffer = plan.buffers(index);
  if (!buffer.has_cuda_bytes()) return absl::OkStatus();
  if (buffer.class_() != proto::WORKSPACE || buffer.size().kind() != proto::SizeExpr::CONSTANT ||
      buffer.space() != proto::DEVICE || buffer.persistent()) {
    return Invalid("buffer ", BufferName(plan, index),
                   " has a size for CUDA, but is no scratch of a constant size on the device");
  }
  if (buffer.cuda_bytes() > kMaxBufferBytes)
    return Invalid("buffer ", BufferName(plan, index), " has an impossible size");
  return absl::OkStatus();
}

absl::Status VerifyBuffers(const proto::Plan& plan) {
  for (int i = 0; i < plan.buffers_size(); ++i) {
    const proto::Buffer& buffer = plan.buffers(i);
    if (!proto::MemoryClass_IsValid(buffer.class_()) || !proto::MemorySpace_IsValid(buffer.space())) {
      return Invalid("buffer ", BufferName(plan, i), " is in an unknown class or space");
    }
    FT_RETURN_IF_ERROR(VerifySize(plan, i));
    FT_RETURN_IF_ERROR(VerifyCudaBytes(plan, i));
    if (buffer.persistent()) continue;
    if (buffer.program() >= static_cast<uint32_t>(plan.programs_size())) {
      return Invalid("buffer ", BufferName(plan, i), " belongs to program ", buffer.program(), " of ",
                     plan.programs_size());
    }
    const proto::Program& program = plan.programs(buffer.program());
    if (buffer.first() > buffer.last() ||
        buffer.last() >= static_cast<uint32_t>(program.instructions_size())) {
      return Invalid("buffer ", BufferName(plan, i), " lives from instruction ", buffer.first(), " to ",
                     buffer.last(), " of ", program.name(), ", which has ", program.instructions_size());
    }
  }
  return absl::OkStatus();
}

// What a role says about the buffer that has it. All others are names of states of an optimizer.
struct Role {
  const char* name;
  proto::MemoryClass memory_class;
  bool may_be_16_bit;
};
constexpr Role kRoles[] = {
    {"parameters", proto::PARAMETERS, true},
    {"master", proto::OPTIMIZER_STATE, true},  // bf16 where those are updated
    {"gradients", proto::GRADIENTS, true},
    {"accumulated", proto::GRADIENTS, true},
};
constexpr Role kStateOfOptimizer = {"", proto::OPTIMIZER_STATE, false};

// What a name in a checkpoint may be.
bool IsIdentifier(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
  });
}

// Nothing of the unit is trained: it has parameters and no more.
bool IsFrozen(const proto::Plan& plan, uint32_t unit) {
  return std::all_of(
      plan.unit_states().begin(), plan.unit_states().end(), [&](const proto::Plan::UnitState& state) {
        return state.unit() != unit || state.role() == "parameters" || state.role() == "master";
      });
}

// A state of the optimizer that is whole on every rank: f32, without gaps.
absl::Status VerifyWholeState(const proto::Plan& plan, const proto::Plan::UnitState& state) {
  const std::string& unit = plan.units(static_cast<int>(state.unit())).name();
  if (!proto::Plan::UnitState::Layout_IsValid(state.layout()))
    return Invalid("state '", state.role(), "' of unit '", unit, "' is laid out in an unknown way");
  uint64_t elements = 0;
  for (const proto::Parameter& parameter : plan.parameters()) {
    if (parameter.unit() != state.unit()) continue;
    const std::vector<int64_t> whole(parameter.shape().begin(), parameter.shape().end());
    elements += static_cast<uint64_t>(StateElements(static_cast<StateLayoutKind>(state.layout()), whole));
  }
  const proto::Buffer& buffer = plan.buffers(static_cast<int>(state.buffer()));
  if (buffer.persistent() && buffer.class_() == proto::OPTIMIZER_STATE &&
      buffer.size().kind() == proto::SizeExpr::CONSTANT && elements > 0 &&
      buffer.size().value() == elements * sizeof(float))
    return absl::OkStatus();
  return Invalid("buffer ", BufferName(plan, static_cast<int>(state.buffer())),
                 " is not a persistent buffer of the ", elements, " elements of '", state.role(),
                 "' of unit '", unit, "'");
}

absl::Status VerifyUnitState(const proto::Plan& plan, const proto::Plan::UnitState& state) {
  if (state.unit() >= static_cast<uint32_t>(plan.units_size()))
    return Invalid("state '", state.role(), "' belongs to unit ", state.unit(), " of ", plan.units_size());
  const std::string& unit = plan.units(state.unit()).name();
  if (state.buffer() >= static_cast<uint32_t>(plan.buffers_size()))
    return Invalid("unit '", unit, "' names buffer ", state.buffer(), " of ", plan.buffers_size());
  const auto* role = std::find_if(std::begin(kRoles), std::end(kRoles),
                                  [&](const Role& known) { return state.role() == known.name; });
  if (role == std::end(kRoles)) role = &kStateOfOptimizer;
  if (!IsIdentifier(state.role()))
    return Invalid("unit '", unit, "' has a state whose role is no name: '", absl::CHexEscape(state.role()),
                   "'");
  const proto::Buffer& buffer = plan.buffers(state.buffer());
  const proto::SizeExpr& size = buffer.size();
  const std::string name = BufferName(plan, state.buffer());
  if (state.layout() != proto::Plan::UnitState::ELEMENTS)
    return role == &kStateOfOptimizer ? VerifyWholeState(plan, state)
                                      : Invalid("state '", state.role(), "' of unit '", unit,
                                                "' does not have an element for each of the unit's");
  if (!buffer.persistent() || size.kind() == proto::SizeExpr::CONSTANT || size.unit() != state.unit())
    return Invalid("buffer ", name, " is not a persistent flat buffer of unit '", unit, "'");
  // The fp32 copy of a frozen unit belongs to no optimizer.
  const bool is_frozen_master =
      state.role() == "master" && buffer.class_() == proto::PARAMETERS && IsFrozen(plan, state.unit());
  if (buffer.class_() != role->memory_class && !is_frozen_master) {
    return Invalid("buffer ", name, " holds '", state.role(), "' of unit '", unit, "', but is of class ",
                   proto::MemoryClass_Name(buffer.class_()));
  }
  if (size.value() != 4 && !(size.value() == 2 && role->may_be_16_bit)) {
    return Invalid("buffer ", name, " holds '", state.role(), "' of unit '", unit, "' in ", size.value(),
                   " bytes per element");
  }
  return absl::OkStatus();
}

absl::Status VerifyUnitStates(const proto::Plan& plan) {
  std::set<std::pair<uint32_t, std::string>> roles;
  std::set<uint32_t> buffers;
  for (const proto::Plan::UnitState& state : plan.unit_states()) {
    FT_RETURN_IF_ERROR(VerifyUnitState(plan, state));
    const std::string& unit = plan.units(state.unit()).name();
    if (!roles.emplace(state.unit(), state.role()).second)
      return Invalid("unit '", unit, "' has state '", state.role(), "' twice");
    if (!buffers.insert(state.buffer()).second)
      return Invalid("buffer ", BufferName(plan, state.buffer()), " holds two states, one of them '",
                     state.role(), "' of unit '", unit, "'");
  }
  return absl::OkStatus();
}

absl::Status VerifyPrograms(const proto::Plan& plan) {
  std::set<std::string> names;
  for (const proto::Program& program : plan.programs()) {
    if (!names.insert(program.name()).second) return Invalid("it has two programs '", program.name(), "'");
  }
  if (plan.two_axes() && !Shards(plan)) return Invalid("it uses both axes of the mesh, but shards nothing");
  // 0 is 1, of a plan without a training step.
  const bool accumulates = names.contains("train_micro");
  if (plan.micro_steps() >= kMaxSequence || (plan.micro_steps() > 1) != accumulates) {
    return Invalid("a training step has ", plan.micro_steps(), " micro-steps, but the plan has ",
                   accumulates ? "a" : "no", " program train_micro");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyTables(const proto::Plan& plan) {
  FT_RETURN_IF_ERROR(VerifyNumbers(plan));
  FT_RETURN_IF_ERROR(VerifyFacts(plan));
  FT_RETURN_IF_ERROR(VerifyClusters(plan));
  FT_RETURN_IF_ERROR(VerifyUnits(plan));
  FT_RETURN_IF_ERROR(VerifyParameters(plan));
  FT_RETURN_IF_ERROR(VerifyBuffers(plan));
  FT_RETURN_IF_ERROR(VerifyUnitStates(plan));
  return VerifyPrograms(plan);
}

}  // namespace ft
