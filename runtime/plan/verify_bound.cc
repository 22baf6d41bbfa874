#include "runtime/plan/verify_bound.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/size_expr.h"

namespace ft {
namespace {

constexpr uint64_t kAlignment = 256;

template <typename... Parts>
absl::Status InvalidAddresses(const Parts&... parts) {
  return absl::InternalError(absl::StrCat("invalid addresses: ", parts...));
}

std::string BytesText(const proto::Plan& plan, const BoundPlan& bound, uint32_t buffer) {
  return absl::StrCat("buffer ", BufferName(plan, buffer), " (bytes ", bound.offsets[buffer], " to ",
                      bound.offsets[buffer] + bound.sizes[buffer], ")");
}

// What proto::SizeExpr and cuda_bytes mean, in 128 bits.
absl::Status VerifySize(const proto::Plan& plan, const BoundPlan& bound, uint32_t buffer) {
  using Wide = unsigned __int128;
  const proto::SizeExpr& size = plan.buffers(buffer).size();
  Wide bytes = size.value();
  if (size.kind() == proto::SizeExpr::SHARE && Wide{size.index()} * bound.mesh.shard >= size.count())
    bytes = 0;
  if (IsOfUnit(size)) {
    const Wide shards = bound.mesh.shard, block = plan.block_elements();
    const Wide blocks = plan.units(size.unit()).elements() / plan.block_elements();
    const Wide slice = (blocks + shards - 1) / shards * block;
    bytes *= size.kind() == proto::SizeExpr::UNIT_FULL ? slice * shards : slice;
    if (bound.slices[size.unit()] != slice)
      return InvalidAddresses("a slice of unit '", plan.units(size.unit()).name(), "' has ",
                              bound.slices[size.unit()], " elements");
  }
  if (bound.device_class == DeviceClass::kCuda && plan.buffers(buffer).has_cuda_bytes())
    bytes = plan.buffers(buffer).cuda_bytes();
  if (bytes != bound.sizes[buffer])
    return InvalidAddresses("buffer ", BufferName(plan, buffer), " has ", bound.sizes[buffer], " bytes, not ",
                            static_cast<uint64_t>(bytes));
  return absl::OkStatus();
}

absl::Status VerifyPlace(const proto::Plan& plan, const BoundPlan& bound, uint32_t buffer) {
  const uint64_t arena =
      (plan.buffers(buffer).space() == proto::DEVICE ? bound.device : bound.host).arena_bytes;
  const uint64_t offset = bound.offsets[buffer];
  if (offset % kAlignment != 0)
    return InvalidAddresses("buffer ", BufferName(plan, buffer), " begins at ", offset,
                            ", not a multiple of ", kAlignment);
  if (offset > arena || bound.sizes[buffer] > arena - offset)
    return InvalidAddresses(BytesText(plan, bound, buffer), " leaves the arena of ", arena, " bytes");
  return absl::OkStatus();
}

// Sweeps through the buffers of one program and the persistent ones of one space in the order of time, with
// those alive sorted by address: as long as they are apart, one that is born can only meet its neighbours.
class Sweep {
 public:
  Sweep(const proto::Plan& plan, const BoundPlan& bound, int program)
      : plan_(plan), bound_(bound), program_(program) {}

  absl::Status Run(const std::vector<uint32_t>& buffers) {
    struct Event {
      uint64_t time;
      bool birth;  // deaths come first: a buffer is dead after its last instruction
      uint32_t buffer;
    };
    std::vector<Event> events;
    for (uint32_t buffer : buffers) {
      const proto::Buffer& b = plan_.buffers(buffer);
      if (bound_.sizes[buffer] == 0) continue;
      // Time 0 is before the first instruction.
      events.push_back({b.persistent() ? 0 : uint64_t{b.first()} + 1, true, buffer});
      if (!b.persistent()) events.push_back({uint64_t{b.last()} + 2, false, buffer});
    }
    std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
      return std::tie(a.time, a.birth, a.buffer) < std::tie(b.time, b.birth, b.buffer);
    });
    for (const Event& event : events) {
      if (event.birth) {
        FT_RETURN_IF_ERROR(Add(event.buffer, event.time));
      } else {
        alive_.erase(bound_.offsets[event.buffer]);
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Add(uint32_t buffer, uint64_t time) {
    const auto [place, added] = alive_.emplace(bound_.offsets[buffer], buffer);
    if (!added) return Clash(place->second, buffer, time);
    const auto next = std::next(place);
    if (next != alive_.end() && End(buffer) > next->first) return Clash(next->second, buffer, time);
    if (place != alive_.begin() && End(std::prev(place)->second) > place->first)
      return Clash(std::prev(place)->second, buffer, time);
    return absl::OkStatus();
  }

  uint64_t End(uint32_t buffer) const { return bound_.offsets[buffer] + bound_.sizes[buffer]; }

  absl::Status Clash(uint32_t a, uint32_t b, uint64_t time) const {
    return InvalidAddresses(
        BytesText(plan_, bound_, a), " and ", BytesText(plan_, bound_, b), " share bytes while both live, ",
        time == 0 ? "always"
                  : absl::StrCat("at ", InstructionPlace(plan_, program_, static_cast<int>(time - 1))));
  }

  const proto::Plan& plan_;
  const BoundPlan& bound_;
  const int program_;
  std::map<uint64_t, uint32_t> alive_;  // by offset
};

}  // namespace

absl::Status VerifyBound(const proto::Plan& plan, const BoundPlan& bound) {
  FT_RETURN_IF_ERROR(CheckMesh(plan, bound.mesh));
  const auto buffers = static_cast<size_t>(plan.buffers_size());
  if (bound.sizes.size() != buffers || bound.offsets.size() != buffers ||
      bound.slices.size() != static_cast<size_t>(plan.units_size()))
    return InvalidAddresses("they are for another plan");
  for (uint32_t b = 0; b < buffers; ++b) {
    FT_RETURN_IF_ERROR(VerifySize(plan, bound, b));
    FT_RETURN_IF_ERROR(VerifyPlace(plan, bound, b));
  }
  for (const proto::MemorySpace space : {proto::DEVICE, proto::HOST}) {
    std::vector<uint32_t> persistent;
    std::vector<std::vector<uint32_t>> by_program(plan.programs_size());
    for (uint32_t b = 0; b < buffers; ++b) {
      const proto::Buffer& buffer = plan.buffers(b);
      if (buffer.space() == space)
        (buffer.persistent() ? persistent : by_program[buffer.program()]).push_back(b);
    }
    by_program.emplace_back();  // persistent ones alone
    for (size_t p = 0; p < by_program.size(); ++p) {
      by_program[p].insert(by_program[p].end(), persistent.begin(), persistent.end());
      FT_RETURN_IF_ERROR(Sweep(plan, bound, static_cast<int>(p)).Run(by_program[p]));
    }
  }
  return absl::OkStatus();
}

}  // namespace ft
