#include "runtime/checkpoint/state/state_view.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "runtime/base/status_macros.h"

namespace ft {

absl::Status StateView::Read(uint32_t buffer, ElementRange range, void* out) {
  const std::vector<LogicalTensor>& tensors = reader_.layout().tensors();
  const uint64_t size = SizeOf(state().buffers[buffer].dtype);
  auto* const to = static_cast<std::byte*>(out);
  uint64_t at = range.begin;
  const auto zeros_until = [&](uint64_t end) {
    std::memset(to + (at - range.begin) * size, 0, (end - at) * size);
    at = end;
  };
  auto tensor = std::partition_point(tensors.begin(), tensors.end(), [&](const LogicalTensor& t) {
    return std::pair(t.buffer, t.range.end) <= std::pair(buffer, range.begin);
  });
  for (; tensor != tensors.end() && tensor->buffer == buffer && tensor->range.begin < range.end; ++tensor) {
    const ElementRange part = Intersect(tensor->range, range);
    if (part.empty()) continue;
    zeros_until(part.begin);
    FT_RETURN_IF_ERROR(reader_.Read(static_cast<uint32_t>(tensor - tensors.begin()), part,
                                    to + (part.begin - range.begin) * size));
    at = part.end;
  }
  zeros_until(range.end);
  return absl::OkStatus();
}

}  // namespace ft
