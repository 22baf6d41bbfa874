// The state of a checkpoint as another one is to hold it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/checkpoint/state/share_writer.h"
#include "runtime/checkpoint/state/state_view.h"

namespace ft::ckpt {

// Reads as it is written, a chunk at a time; its memory does not grow with the state.
class ConvertedState : public StateSource {
 public:
  // `to` has the units and parameters of from.state() and some of its buffers, in types that Convert
  // (elements.h) reaches where they differ. Both must outlive it.
  ConvertedState(StateView& from, const StateLayout& to);

  // Errors: those of StateView::Read.
  absl::StatusOr<const std::byte*> Get(const Extent& extent, uint64_t offset, uint64_t bytes,
                                       std::byte* scratch) override;

  // Finite values that became infinite.
  uint64_t overflowed() const { return overflowed_; }

 private:
  StateView& from_;
  const StateLayout& to_;
  std::vector<uint32_t> buffers_;  // of from_, by buffer of to_
  std::vector<std::byte> read_;
  uint64_t overflowed_ = 0;
};

}  // namespace ft::ckpt
