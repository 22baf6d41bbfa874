#include "runtime/executor/activity.h"

#include "runtime/base/monotonic_clock.h"

namespace ft {

std::string_view Name(Activity activity) {
  switch (activity) {
    case Activity::kNone:
      return "nothing";
    case Activity::kPreparing:
      return "preparing";
    case Activity::kMeeting:
      return "meeting the other ranks";
    case Activity::kOpening:
      return "opening";
    case Activity::kLoading:
      return "loading";
    case Activity::kReading:
      return "reading data";
    case Activity::kComputing:
      return "computing";
    case Activity::kReadingAhead:
      return "reading the next batch";
    case Activity::kReporting:
      return "reporting";
    case Activity::kReplaying:
      return "replaying a step that is not finite";
    case Activity::kEvaluating:
      return "evaluating";
    case Activity::kAgreeing:
      return "agreeing whether to save";
    case Activity::kSaving:
      return "saving";
    case Activity::kAwaitingSave:
      return "waiting for the save under way";
    case Activity::kPublishing:
      return "waiting for all ranks to have saved";
    case Activity::kFinishing:
      return "writing results";
    case Activity::kEnding:
      return "ending";
  }
  return "nothing";
}

bool IsAfterSteps(Activity activity) {
  return activity == Activity::kAgreeing || activity == Activity::kSaving ||
         activity == Activity::kAwaitingSave || activity == Activity::kPublishing;
}

// Every store is a release and every load an acquire: who reads a part of a newer state from a slot also sees
// how many had been entered before it, and reads again.
void ActivityRecord::Enter(Activity activity, int64_t step, int64_t micro_step) noexcept {
  const uint64_t number = entered_.load(std::memory_order_relaxed) + 1;
  Slot& slot = slots_[number % kSlots];
  slot.activity.store(activity, std::memory_order_release);
  slot.step.store(step, std::memory_order_release);
  slot.micro_step.store(micro_step, std::memory_order_release);
  slot.since_ns.store(MonotonicNs(), std::memory_order_release);
  entered_.store(number, std::memory_order_release);
}

ActivityRecord::State ActivityRecord::Read() const {
  for (;;) {
    const uint64_t number = entered_.load(std::memory_order_acquire);
    const Slot& slot = slots_[number % kSlots];
    const State state = {.activity = slot.activity.load(std::memory_order_acquire),
                         .step = slot.step.load(std::memory_order_acquire),
                         .micro_step = slot.micro_step.load(std::memory_order_acquire),
                         .since_ns = slot.since_ns.load(std::memory_order_acquire)};
    // State number + kSlots is written there when the one before it has been entered.
    if (entered_.load(std::memory_order_acquire) < number + kSlots - 1) return state;
  }
}

}  // namespace ft
