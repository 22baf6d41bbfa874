// What a thread of a run is at, beyond the instructions of its programs, for whoever asks from another one.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace ft {

enum class Activity : int {
  kNone,          // nothing yet, or nothing any more
  kPreparing,     // reads and checks what it was given
  kMeeting,       // waits for the other ranks, makes connections
  kOpening,       // memory, kernels, outputs
  kLoading,       // parameters: drawn, or read from weights or a checkpoint
  kReading,       // the batch of a micro-step
  kComputing,     // the program of a micro-step
  kReadingAhead,  // the batch of the next one, while that runs
  kReporting,     // metrics and logs of a step
  kReplaying,     // a micro-step of a step that was not finite
  kEvaluating,
  kAgreeing,  // whether the ranks save after this step
  kSaving,    // a checkpoint: copies the state, or writes it
  kAwaitingSave,
  kPublishing,  // a checkpoint: has written its share, and waits for the others and for rank 0 to publish it
  kFinishing,   // weights, trace
  kEnding,      // waits for the goodbye of the others
};

// "reading data"
std::string_view Name(Activity activity);

// Whether its step is how many are done, as checkpoints are numbered, and not the one that is under way.
bool IsAfterSteps(Activity activity);

// One thread enters, any may read: also while the one that enters is stopped amid that. Neither waits or
// allocates.
class ActivityRecord {
 public:
  struct State {
    Activity activity = Activity::kNone;
    int64_t step = -1;        // counted from 0, or those done (IsAfterSteps); -1: it belongs to none
    int64_t micro_step = -1;  // of the step
    int64_t since_ns = 0;     // of the host's steady clock
  };

  void Enter(Activity activity, int64_t step = -1, int64_t micro_step = -1) noexcept;

  State Read() const;

 private:
  struct Slot {
    std::atomic<Activity> activity = Activity::kNone;
    std::atomic<int64_t> step = -1, micro_step = -1, since_ns = 0;
  };
  static constexpr uint64_t kSlots = 8;

  // State k lies in slot k % kSlots, whole before entered_ becomes k. State 0 is none.
  std::array<Slot, kSlots> slots_;
  std::atomic<uint64_t> entered_ = 0;
};

// Where there may be no record.
inline void Enter(ActivityRecord* record, Activity activity, int64_t step = -1, int64_t micro_step = -1) {
  if (record != nullptr) record->Enter(activity, step, micro_step);
}

}  // namespace ft
