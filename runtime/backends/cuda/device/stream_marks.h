// What a stream tells of itself as it passes, in a recording too, while it hangs too: which task it has
// reached, and how long it waited for others. Two ways to do that: word_marks.h takes nothing of the device,
// kernel_marks.h is for drivers that refuse what the first needs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/backends/cuda/driver.h"
#include "runtime/device/device.h"

namespace ft::cuda {

// A word that the device writes meanwhile.
inline uint64_t LoadMark(uint64_t& word) { return std::atomic_ref(word).load(std::memory_order_acquire); }

class StreamMarks {
 public:
  virtual ~StreamMarks() = default;

  // Enqueued on the stream. `info` is what InFlight will name.
  virtual absl::Status TaskBegin(const CommandInfo& info, StreamHandle stream) = 0;
  virtual absl::Status TaskEnd(StreamHandle stream) = 0;
  // Around what the stream waits for.
  virtual absl::Status WaitBegin(StreamHandle stream) = 0;
  virtual absl::Status WaitEnd(StreamHandle stream) = 0;

  // What a start of a recording does, before it, on the stream that it is started on: for the marks in it.
  class Replay {
   public:
    virtual ~Replay() = default;
    virtual absl::Status Prepare(StreamHandle origin) = 0;
  };
  // Of the recording that ends now. Null: none of its marks wants that. The marks must live as long.
  virtual std::unique_ptr<Replay> EndRecording() { return nullptr; }

  // Adds up what has been waited since, once the stream was waited for; of a recording that was started
  // several times since, the last start. What cannot be known is left out: it is a metric, and ends no
  // training.
  virtual void Collect() {}

  // Both can be called from any thread.
  virtual InFlight in_flight() const = 0;
  virtual int64_t waited_ns() const = 0;
};

}  // namespace ft::cuda
