#include "runtime/checkpoint/state/share.h"

#include <algorithm>
#include <map>
#include <utility>

namespace ft {

Share::Share(const FileLayout& layout, int rank, const Hosts& hosts) {
  const HostBorders borders(layout, rank, hosts);
  std::map<uint32_t, Piece> by_file;
  for (const Extent& extent : layout.WrittenBy(rank)) {
    Add(extent, SizeOf(layout.state().buffers[extent.buffer].dtype), borders, by_file[extent.file]);
    state_bytes_ += extent.bytes;
  }
  for (int f = 0; f < layout.num_files(); ++f) {
    if (layout.HeadWriter(f) != rank) continue;
    LayoutFile file = layout.File(f);
    const auto number = static_cast<uint32_t>(f);
    Piece& piece = by_file[number];
    piece.head = std::move(file.head);
    piece.file_bytes = file.bytes;
    if (borders.Shares(number, piece.head.size())) piece.head_sent = piece.head.size() % borders.page_bytes();
    sent_bytes_ += piece.head_sent;
  }
  bytes_ = state_bytes_;
  for (auto& [file, piece] : by_file) {
    piece.file = file;
    piece.name = layout.FileName(static_cast<int>(file));
    bytes_ += piece.head.size();
    pieces_.push_back(std::move(piece));
  }
}

// In up to three parts: only its first and last page can have bytes of others.
void Share::Add(const Extent& extent, uint64_t element_bytes, const HostBorders& borders, Piece& piece) {
  const uint64_t page = borders.page_bytes(), end = extent.offset + extent.bytes;
  uint64_t first = extent.offset, last = end;
  if (borders.Shares(extent.file, first)) first = std::min(end, (first / page + 1) * page);
  if (borders.Shares(extent.file, end - 1)) last = std::max(first, (end - 1) / page * page);
  const auto add = [&](uint64_t from, uint64_t to, bool sent) {
    if (from == to) return;
    Part part = {.extent = extent, .sent = sent};
    part.extent.offset = from;
    part.extent.bytes = to - from;
    part.extent.element += (from - extent.offset) / element_bytes;
    if (sent) sent_bytes_ += to - from;
    piece.parts.push_back(part);
  };
  add(extent.offset, first, true);
  add(first, last, false);
  add(last, end, true);
}

}  // namespace ft
