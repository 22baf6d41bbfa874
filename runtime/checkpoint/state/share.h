// What one rank has to write of a checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/checkpoint/state/file_layout.h"
#include "runtime/checkpoint/state/host_borders.h"

namespace ft {

// One rank's part in every checkpoint of a run: made once, since it does not change. Kept by file, so that a
// file is opened once.
class Share {
 public:
  struct Part {
    Extent extent;
    // In a page that another host has bytes of, too: it goes to rank 0, which writes such pages.
    bool sent = false;
  };
  struct Piece {
    uint32_t file = 0;
    std::string name;
    std::string head;         // of the file; empty where another rank writes it
    uint64_t head_sent = 0;   // bytes at the head's end that go to rank 0
    uint64_t file_bytes = 0;  // of the whole file, where there is a head
    std::vector<Part> parts;  // by offset
  };

  Share(const FileLayout& layout, int rank, const Hosts& hosts = {});

  const std::vector<Piece>& pieces() const { return pieces_; }
  uint64_t state_bytes() const { return state_bytes_; }  // without heads
  uint64_t bytes() const { return bytes_; }
  uint64_t sent_bytes() const { return sent_bytes_; }  // of these

 private:
  void Add(const Extent& extent, uint64_t element_bytes, const HostBorders& borders, Piece& piece);

  std::vector<Piece> pieces_;
  uint64_t state_bytes_ = 0;
  uint64_t bytes_ = 0;
  uint64_t sent_bytes_ = 0;
};

}  // namespace ft
