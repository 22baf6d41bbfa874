#include "runtime/executor/activity.h"

#include <chrono>

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
    case Activity::kReporting:
      return "reporting";
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

// Every store is a release and every load an acquire: who reads a part of a newer state sees the odd version
// that was stored before it.
void ActivityRecord::Enter(Activity activity, int64_t step, int64_t micro_step) noexcept {
  const uint64_t version = version_.load(std::memory_order_relaxed);
  version_.store(version + 1, std::memory_order_release);
  activity_.store(activity, std::memory_order_release);
  step_.store(step, std::memory_order_release);
  micro_step_.store(micro_step, std::memory_order_release);
  since_ns_.store(std::chrono::duration_cast<std::chrono::nanoseconds>(
                      std::chrono::steady_clock::now().time_since_epoch())
                      .count(),
                  std::memory_order_release);
  version_.store(version + 2, std::memory_order_release);
}

ActivityRecord::State ActivityRecord::Read() const {
  // A writer that was stopped amid its stores may never go on; then a mixture has to do.
  constexpr int kTries = 1000;
  State state;
  for (int tries = 0; tries < kTries; ++tries) {
    const uint64_t version = version_.load(std::memory_order_acquire);
    state = {.activity = activity_.load(std::memory_order_acquire),
             .step = step_.load(std::memory_order_acquire),
             .micro_step = micro_step_.load(std::memory_order_acquire),
             .since_ns = since_ns_.load(std::memory_order_acquire)};
    if (version % 2 == 0 && version_.load(std::memory_order_acquire) == version) break;
  }
  return state;
}

}  // namespace ft
