// Where the shares of two hosts meet in the files of a checkpoint.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "runtime/checkpoint/state/file_layout.h"

namespace ft {

// Where the ranks of a run are.
struct Hosts {
  std::vector<int> of_rank = {};  // a number for each host; empty: all ranks are on one
  uint64_t page_bytes = 4096;     // of the systems' page caches
};

// The pages of files that a host and another one have bytes of. Each host caches pages of a shared file
// system for itself and writes whole ones back, so only one of them may write such a page.
class HostBorders {
 public:
  // As seen from the host of `rank`; every host finds the same pages. None with one host, or for types whose
  // files have one writer each.
  HostBorders(const FileLayout& layout, int rank, const Hosts& hosts);

  // Whether the page that byte `offset` of a file is in has bytes of another host.
  bool Shares(uint32_t file, uint64_t offset) const { return pages_.contains({file, offset / page_bytes_}); }
  uint64_t page_bytes() const { return page_bytes_; }

 private:
  uint64_t page_bytes_;
  std::set<std::pair<uint32_t, uint64_t>> pages_;  // file and page
};

}  // namespace ft
