#include "tools/ftckpt/converted_state.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "runtime/base/convert_elements.h"
#include "runtime/base/status_macros.h"

namespace ft::ckpt {
namespace {

constexpr uint64_t kPieceElements = uint64_t{1} << 18;

}  // namespace

ConvertedState::ConvertedState(StateView& from, const StateLayout& to) : from_(from), to_(to) {
  std::map<std::pair<std::string_view, uint32_t>, uint32_t> places;
  const std::vector<StateBuffer>& there = from.state().buffers;
  for (uint32_t b = 0; b < there.size(); ++b) places[{there[b].role, there[b].unit}] = b;
  for (const StateBuffer& buffer : to.buffers) buffers_.push_back(places.at({buffer.role, buffer.unit}));
}

absl::StatusOr<const std::byte*> ConvertedState::Get(const Extent& extent, uint64_t offset, uint64_t bytes,
                                                     std::byte* scratch) {
  const DType dtype = to_.buffers[extent.buffer].dtype;
  const uint32_t buffer = buffers_[extent.buffer];
  const DType before = from_.state().buffers[buffer].dtype;
  const uint64_t size = SizeOf(dtype);
  if (offset % size != 0 || bytes % size != 0)
    return absl::InternalError("a part of an element was asked for");
  const uint64_t begin = extent.element + offset / size, end = begin + bytes / size;
  if (before == dtype) {
    FT_RETURN_IF_ERROR(from_.Read(buffer, {begin, end}, scratch));
    return scratch;
  }
  std::byte* to = scratch;
  for (uint64_t at = begin; at < end; at += kPieceElements) {
    const uint64_t count = std::min(kPieceElements, end - at);
    read_.resize(kPieceElements * SizeOf(before));
    FT_RETURN_IF_ERROR(from_.Read(buffer, {at, at + count}, read_.data()));
    overflowed_ += ConvertElements(before, read_.data(), dtype, to, count);
    to += count * size;
  }
  return scratch;
}

}  // namespace ft::ckpt
