#include "runtime/checkpoint/state/state_layout.h"

#include <set>
#include <string_view>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "runtime/base/checked.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/stored_parts.h"

namespace ft {
namespace {

constexpr uint64_t kMostBlockElements = uint64_t{1} << 30;
constexpr int kMostRanks = 1 << 20;

uint64_t DivideUp(uint64_t a, uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

template <typename... Args>
absl::Status Impossible(fmt::format_string<Args...> format, Args&&... args) {
  return absl::InvalidArgumentError(fmt::format(format, std::forward<Args>(args)...));
}

absl::Status CheckUnits(const StateLayout& layout) {
  absl::flat_hash_set<std::string> names;
  for (const StateUnit& unit : layout.units) {
    if (unit.name.empty() || !names.insert(unit.name).second)
      return Impossible("unit '{}' has no name or is there twice", unit.name);
    if (unit.elements > static_cast<uint64_t>(kMaxUnitElements) || unit.elements % layout.block_elements != 0)
      return Impossible("unit '{}' has {} elements, which is not possible", unit.name, unit.elements);
  }
  return absl::OkStatus();
}

absl::Status CheckParameter(const StateLayout& layout, const StateParameter& parameter) {
  if (parameter.name.empty() || parameter.unit >= layout.units.size())
    return Impossible("parameter '{}' has no name or no unit", parameter.name);
  int64_t elements = 1;
  for (const int64_t extent : parameter.shape) {
    if (extent < 1) return Impossible("parameter '{}' has a dimension of {}", parameter.name, extent);
    elements = CheckedMul(elements, extent);
  }
  const uint64_t unit = layout.units[parameter.unit].elements;
  if (static_cast<uint64_t>(elements) != parameter.elements || parameter.elements > unit ||
      parameter.offset > unit - parameter.elements)
    return Impossible("parameter '{}' does not lie in its unit '{}'", parameter.name,
                      layout.units[parameter.unit].name);
  return absl::OkStatus();
}

absl::Status CheckParameters(const StateLayout& layout) {
  absl::flat_hash_set<std::string> names;
  const StateParameter* before = nullptr;
  for (const StateParameter& parameter : layout.parameters) {
    FT_RETURN_IF_ERROR(CheckParameter(layout, parameter));
    if (!names.insert(parameter.name).second)
      return Impossible("parameter '{}' is there twice", parameter.name);
    const bool ordered =
        before == nullptr || before->unit < parameter.unit ||
        (before->unit == parameter.unit && before->offset + before->elements <= parameter.offset);
    if (!ordered) return Impossible("parameters '{}' and '{}' overlap", before->name, parameter.name);
    before = &parameter;
  }
  return absl::OkStatus();
}

absl::Status CheckBuffers(const StateLayout& layout) {
  std::set<std::pair<std::string_view, uint32_t>> seen;
  for (const StateBuffer& buffer : layout.buffers) {
    if (buffer.unit >= layout.units.size()) return Impossible("state '{}' belongs to no unit", buffer.role);
    if (buffer.role.empty() || buffer.role.find('/') != std::string::npos)
      return Impossible("'{}' is no name of a state", buffer.role);
    if (!seen.insert({buffer.role, buffer.unit}).second)
      return Impossible("state '{}' of unit '{}' is there twice", buffer.role,
                        layout.units[buffer.unit].name);
    if (buffer.kind < StateLayoutKind::kElements || buffer.kind > StateLayoutKind::kVectors ||
        (buffer.kind != StateLayoutKind::kElements && (buffer.sliced || buffer.role == kWeightsRole)))
      return Impossible("state '{}' of unit '{}' is laid out in no possible way", buffer.role,
                        layout.units[buffer.unit].name);
  }
  return absl::OkStatus();
}

}  // namespace

uint64_t StateLayout::SliceElements(uint32_t unit) const {
  const uint64_t blocks = units[unit].elements / block_elements;
  return DivideUp(blocks, static_cast<uint64_t>(mesh.shard)) * block_elements;
}

ElementRange StateLayout::HeldBy(const StateBuffer& buffer, int rank) const {
  if (!buffer.sliced) return {0, Elements(buffer)};
  const uint64_t slice = SliceElements(buffer.unit), begin = mesh.ShardRank(rank) * slice;
  return {begin, begin + slice};
}

// A slice is shared by the ranks along the replica axis, a whole buffer by all.
uint64_t StateLayout::PartBlocks(const StateBuffer& buffer) const {
  const uint64_t elements = buffer.sliced ? SliceElements(buffer.unit) : Elements(buffer);
  const int parts = buffer.sliced ? mesh.replica : mesh.world_size();
  return std::max<uint64_t>(1, DivideUp(DivideUp(elements, block_elements), static_cast<uint64_t>(parts)));
}

ElementRange StateLayout::SavedBy(const StateBuffer& buffer, int rank) const {
  const ElementRange held = Intersect(HeldBy(buffer, rank), {0, Elements(buffer)});
  const uint64_t part = PartBlocks(buffer) * block_elements;
  const auto number = static_cast<uint64_t>(buffer.sliced ? mesh.ReplicaRank(rank) : rank);
  return Intersect(held, {held.begin + number * part, held.begin + (number + 1) * part});
}

int StateLayout::SaverOf(const StateBuffer& buffer, uint64_t element) const {
  const uint64_t part = PartBlocks(buffer) * block_elements;
  if (!buffer.sliced) return static_cast<int>(element / part);
  const uint64_t slice = SliceElements(buffer.unit);
  return static_cast<int>(element % slice / part) * mesh.shard + static_cast<int>(element / slice);
}

std::pair<size_t, size_t> StateLayout::ParametersOf(uint32_t unit) const {
  const auto first = std::lower_bound(parameters.begin(), parameters.end(), unit,
                                      [](const StateParameter& p, uint32_t u) { return p.unit < u; });
  const auto last = std::upper_bound(first, parameters.end(), unit,
                                     [](uint32_t u, const StateParameter& p) { return u < p.unit; });
  return {first - parameters.begin(), last - parameters.begin()};
}

uint64_t StateLayout::Elements(const StateBuffer& buffer) const {
  if (buffer.kind == StateLayoutKind::kElements) return units[buffer.unit].elements;
  uint64_t elements = 0;
  ForEachTensor(buffer, [&](const StateParameter&, ElementRange range) { elements = range.end; });
  return elements;
}

void StateLayout::ForEachTensor(const StateBuffer& buffer,
                                absl::FunctionRef<void(const StateParameter&, ElementRange)> visit) const {
  const auto [first, last] = ParametersOf(buffer.unit);
  uint64_t at = 0;
  for (size_t p = first; p < last; ++p) {
    const StateParameter& parameter = parameters[p];
    if (buffer.kind == StateLayoutKind::kElements) {
      visit(parameter, {parameter.offset, parameter.offset + parameter.elements});
    } else if (const int64_t elements = StateElements(buffer.kind, parameter.shape)) {
      const uint64_t begin = at;
      at += static_cast<uint64_t>(elements);
      visit(parameter, {begin, at});
    }
  }
}

absl::Status StateLayout::Check() const {
  if (block_elements < 1 || block_elements > kMostBlockElements)
    return Impossible("a block of {} elements is not possible", block_elements);
  if (mesh.replica < 1 || mesh.shard < 1 || mesh.replica > kMostRanks / mesh.shard)
    return Impossible("a mesh of {} x {} ranks is not possible", mesh.replica, mesh.shard);
  FT_RETURN_IF_ERROR(CheckUnits(*this));
  FT_RETURN_IF_ERROR(CheckParameters(*this));
  return CheckBuffers(*this);
}

absl::Status SplitIntoParts(StateLayout& layout) {
  std::vector<StateParameter> split;
  for (StateParameter& parameter : layout.parameters) {
    FT_ASSIGN_OR_RETURN(std::vector<StoredPart> parts, StoredParts(parameter.stored_as, parameter.shape));
    const uint64_t elements = parts.empty() ? 0 : parameter.elements / parts.size();
    uint64_t offset = parameter.offset;
    for (StoredPart& part : parts) {
      split.push_back({std::move(part.name), std::move(part.shape), parameter.unit, offset, elements});
      offset += elements;
    }
    if (parts.empty()) split.push_back(std::move(parameter));
  }
  layout.parameters = std::move(split);
  return absl::OkStatus();
}

void OrderBuffers(std::vector<StateBuffer>& buffers) {
  std::sort(buffers.begin(), buffers.end(), [](const StateBuffer& a, const StateBuffer& b) {
    const auto key = [](const StateBuffer& x) {
      return std::tuple(-static_cast<int>(SizeOf(x.dtype)), x.role != kWeightsRole, std::string_view(x.role),
                        x.unit);
    };
    return key(a) < key(b);
  });
}

uint64_t StateBytes(const StateLayout& layout) {
  uint64_t bytes = 0;
  for (const StateBuffer& buffer : layout.buffers)
    layout.ForEachTensor(buffer, [&](const StateParameter&, ElementRange range) {
      bytes += range.size() * SizeOf(buffer.dtype);
    });
  return bytes;
}

uint64_t SavedBytes(const StateLayout& layout, int rank) {
  uint64_t bytes = 0;
  for (const StateBuffer& buffer : layout.buffers) {
    const ElementRange saved = layout.SavedBy(buffer, rank);
    layout.ForEachTensor(buffer, [&](const StateParameter&, ElementRange range) {
      bytes += Intersect(saved, range).size() * SizeOf(buffer.dtype);
    });
  }
  return bytes;
}

uint64_t LocallySavedBytes(const StateLayout& layout, int rank) {
  uint64_t bytes = 0;
  for (const StateBuffer& buffer : layout.buffers)
    bytes += layout.SavedBy(buffer, rank).size() * SizeOf(buffer.dtype);
  return bytes;
}

uint64_t LargestShare(const StateLayout& layout, uint64_t (*bytes)(const StateLayout&, int)) {
  uint64_t most = 0;
  for (int rank = 0; rank < layout.world_size(); ++rank) most = std::max(most, bytes(layout, rank));
  return most;
}

}  // namespace ft
