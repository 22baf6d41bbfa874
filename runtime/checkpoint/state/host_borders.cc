#include "runtime/checkpoint/state/host_borders.h"

#include <algorithm>

namespace ft {
namespace {

struct Run {
  uint32_t file = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// What the ranks of a host write, heads included, joined where it meets.
std::vector<Run> RunsOf(const FileLayout& layout, const Hosts& hosts, int host) {
  std::vector<Run> parts;
  for (int rank = 0; rank < layout.state().world_size(); ++rank) {
    if (hosts.of_rank[static_cast<size_t>(rank)] != host) continue;
    for (const Extent& extent : layout.WrittenBy(rank))
      parts.push_back({extent.file, extent.offset, extent.offset + extent.bytes});
  }
  for (int f = 0; f < layout.num_files(); ++f) {
    if (hosts.of_rank[static_cast<size_t>(layout.HeadWriter(f))] == host)
      parts.push_back({static_cast<uint32_t>(f), 0, layout.File(f).head.size()});
  }
  std::sort(parts.begin(), parts.end(), [](const Run& a, const Run& b) {
    return std::pair(a.file, a.begin) < std::pair(b.file, b.begin);
  });
  std::vector<Run> runs;
  for (const Run& part : parts) {
    if (!runs.empty() && runs.back().file == part.file && runs.back().end == part.begin) {
      runs.back().end = part.end;
    } else {
      runs.push_back(part);
    }
  }
  return runs;
}

}  // namespace

HostBorders::HostBorders(const FileLayout& layout, int rank, const Hosts& hosts)
    : page_bytes_(hosts.page_bytes) {
  if (hosts.of_rank.empty() || layout.type() != CheckpointType::kFull) return;
  const int host = hosts.of_rank[static_cast<size_t>(rank)];
  if (std::all_of(hosts.of_rank.begin(), hosts.of_rank.end(), [&](int other) { return other == host; }))
    return;
  for (const Run& run : RunsOf(layout, hosts, host)) {
    // Files begin with a page, and behind their end is nobody.
    if (run.begin % page_bytes_ != 0) pages_.emplace(run.file, run.begin / page_bytes_);
    if (run.end % page_bytes_ != 0 && run.end != layout.File(static_cast<int>(run.file)).bytes)
      pages_.emplace(run.file, run.end / page_bytes_);
  }
}

}  // namespace ft
