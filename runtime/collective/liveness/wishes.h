// Checkpoints that somebody wishes for while a run trains: a signal on any rank, a clock on rank 0. All ranks
// save after the same step.
//
// A wish goes to rank 0. At the end of a step rank 0 turns it into an order for the end of the next one, and
// goes on only when every rank's monitor has said that it has the order. Ranks train in lockstep: none can
// end a step that rank 0 has not begun. So each of them knows the order before it ends that step.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/collective/liveness/peer_links.h"

namespace ft {

// What to do at the end of a step. Of two, the greater one holds.
enum class Order : uint8_t { kNone = 0, kSave = 1, kSaveAndEnd = 2 };
using Wish = Order;

class Wishes {
 public:
  explicit Wishes(PeerLinks& links);

  // Wishes for kSave or kSaveAndEnd. On any rank, from any thread, at any time; does not wait. Several are
  // one, and a save that is ordered for a step to come fulfils all wishes to save. False, and nothing
  // happens: a rank was lost, or this one is ending.
  bool Request(Wish wish);

  // For the thread that trains, on every rank after every step, counted from 1 (after resuming: from the
  // steps of the whole run). The same on all ranks for a step. Where nobody wishes for anything it reads two
  // atomics and allocates nothing. An order for a step that the run does not take is void. Errors, on rank 0:
  // the verdict where a rank was lost; Unavailable where one does not answer within the time.
  absl::StatusOr<Order> AtBoundary(int64_t steps_done);

  // How long rank 0 waits for the others to know of an order; 5 minutes at first.
  void set_timeout(absl::Duration timeout) { timeout_ = timeout; }

  // A message of rank `rank`; PeerLinks::mutex is held.
  void Hear(size_t rank, PeerMessageType type, absl::string_view text);

 private:
  // Two steps at most have orders that are not carried out everywhere: rank 0 ends step n, and orders for
  // n + 1, while others are still in n. An order is step * 4 + Order.
  std::atomic<int64_t>& OrderOf(int64_t step) { return orders_[step & 1]; }
  Order TakeOrder(int64_t step);
  void Want(Wish wish) ABSL_EXCLUSIVE_LOCKS_REQUIRED(links_.mutex());
  absl::Status Place(int64_t step);

  PeerLinks& links_;
  absl::Duration timeout_ = absl::Minutes(5);
  std::atomic<int64_t> orders_[2] = {0, 0};
  std::atomic<Wish> wanted_ = Wish::kNone;  // of rank 0, which has not ordered it yet
  std::atomic<int64_t> passed_ = 0;         // the last boundary of rank 0

  // Of rank 0, guarded by links_.mutex().
  int64_t ordered_ = 0;  // the step of the last order
  bool ending_ = false;  // that order ends the run
  std::vector<bool> heard_;
};

}  // namespace ft
