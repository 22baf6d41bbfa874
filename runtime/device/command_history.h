// The last commands of a stream, for whoever asks from another thread what it does.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/device/command.h"

namespace ft {

// A ring of fixed size. One thread, that of the stream, records; it neither waits nor allocates: a command
// costs it six stores that x86 makes like any other. Any thread may read meanwhile.
class CommandHistory {
 public:
  static constexpr size_t kRecent = 64;  // finished commands that Read returns at most

  // Nanoseconds are those of the stream's clock.
  struct Entry {
    const CommandInfo* info = nullptr;
    int64_t begin_ns = 0;
    int64_t end_ns = 0;  // 0: not finished
  };
  struct Snapshot {
    std::vector<Entry> recent;     // finished, oldest first
    std::optional<Entry> running;  // what the stream is in now
    uint64_t finished = 0;         // since the stream was made
  };

  // Of the stream's thread, in turns. `info` must outlive the history.
  void Begin(const CommandInfo& info, int64_t now_ns) noexcept;
  void End(int64_t now_ns) noexcept;

  // What is overwritten while it is read is left out, so of a stream that goes on it may be less than
  // kRecent.
  Snapshot Read() const;

 private:
  // More than are read: those before are not overwritten at once.
  static constexpr size_t kSlots = 128;
  static_assert(kSlots >= 2 * kRecent);

  struct Slot {
    std::atomic<const CommandInfo*> info = nullptr;
    std::atomic<int64_t> begin_ns = 0;
    std::atomic<int64_t> end_ns = 0;
  };
  Entry Load(uint64_t number) const;

  std::array<Slot, kSlots> slots_;
  // Command k lies in slot k % kSlots. It is written there before begun_ becomes k + 1, and finished before
  // finished_ does.
  std::atomic<uint64_t> begun_ = 0;
  std::atomic<uint64_t> finished_ = 0;
};

}  // namespace ft
