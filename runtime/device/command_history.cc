#include "runtime/device/command_history.h"

#include <algorithm>

namespace ft {

// Every store is a release, and every load an acquire. So whoever sees a part of command k in a slot also
// sees that k commands have begun before, and can tell that the one it was looking for is gone.
void CommandHistory::Begin(const CommandInfo& info, int64_t now_ns) noexcept {
  const uint64_t number = begun_.load(std::memory_order_relaxed);
  Slot& slot = slots_[number % kSlots];
  slot.info.store(&info, std::memory_order_release);
  slot.begin_ns.store(now_ns, std::memory_order_release);
  slot.end_ns.store(0, std::memory_order_release);
  begun_.store(number + 1, std::memory_order_release);
}

void CommandHistory::End(int64_t now_ns) noexcept {
  const uint64_t number = finished_.load(std::memory_order_relaxed);
  slots_[number % kSlots].end_ns.store(now_ns, std::memory_order_release);
  finished_.store(number + 1, std::memory_order_release);
}

CommandHistory::Entry CommandHistory::Load(uint64_t number) const {
  const Slot& slot = slots_[number % kSlots];
  return {.info = slot.info.load(std::memory_order_acquire),
          .begin_ns = slot.begin_ns.load(std::memory_order_acquire),
          .end_ns = slot.end_ns.load(std::memory_order_acquire)};
}

CommandHistory::Snapshot CommandHistory::Read() const {
  Snapshot snapshot;
  // In this order: had the next command begun in between, this one would be seen to have finished.
  const uint64_t begun = begun_.load(std::memory_order_acquire);
  snapshot.finished = finished_.load(std::memory_order_acquire);
  const uint64_t first = snapshot.finished - std::min<uint64_t>(snapshot.finished, kRecent);
  for (uint64_t number = first; number < snapshot.finished; ++number) snapshot.recent.push_back(Load(number));
  if (begun > snapshot.finished) snapshot.running = Load(begun - 1);
  // The slot of command k is written again from when k + kSlots commands have begun.
  const uint64_t now = begun_.load(std::memory_order_acquire);
  const uint64_t gone = now >= kSlots ? now - kSlots + 1 : 0;  // of those before it nothing is sure
  if (gone > first)
    snapshot.recent.erase(snapshot.recent.begin(),
                          snapshot.recent.begin() + static_cast<ptrdiff_t>(std::min<uint64_t>(
                                                        gone - first, snapshot.recent.size())));
  if (snapshot.running.has_value() && gone > begun - 1) snapshot.running.reset();
  if (snapshot.running.has_value()) snapshot.running->end_ns = 0;  // it may have ended just now
  return snapshot;
}

}  // namespace ft
