#include "runtime/collective/liveness/wishes.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/missing_ranks.h"

namespace ft {
namespace {

constexpr size_t kMaxNamed = 8;

absl::string_view TextOf(const int64_t& number) {
  return absl::string_view(reinterpret_cast<const char*>(&number), sizeof(number));
}

// 0: not a number.
int64_t NumberIn(absl::string_view text) {
  int64_t number = 0;
  if (text.size() == sizeof(number)) std::memcpy(&number, text.data(), sizeof(number));
  return number;
}

int64_t Encode(int64_t step, Order order) { return step * 4 + static_cast<int64_t>(order); }

}  // namespace

Wishes::Wishes(PeerLinks& links) : links_(links), heard_(links.world_size()) {}

bool Wishes::Request(Wish wish) {
  if (wish == Wish::kNone) return false;
  absl::MutexLock lock(&links_.mutex());
  if (links_.over()) return false;
  if (links_.rank() == 0) {
    Want(wish);
  } else {
    links_.Send(0, PeerMessageType::kWish, TextOf(static_cast<int64_t>(wish)));
  }
  return true;
}

void Wishes::Want(Wish wish) {
  if (ending_) return;
  // What is saved after that step is newer than this wish.
  if (wish == Wish::kSave && ordered_ > passed_.load()) return;
  wanted_ = std::max(wanted_.load(), wish);
}

absl::StatusOr<Order> Wishes::AtBoundary(int64_t steps_done) {
  if (links_.world_size() == 1)
    return wanted_.load() == Wish::kNone ? Order::kNone : wanted_.exchange(Wish::kNone);
  const Order order = TakeOrder(steps_done);
  if (links_.rank() > 0) return order;
  passed_ = steps_done;
  if (order != Order::kSaveAndEnd && wanted_.load() != Wish::kNone) FT_RETURN_IF_ERROR(Place(steps_done + 1));
  return order;
}

Order Wishes::TakeOrder(int64_t step) {
  const int64_t order = OrderOf(step).load();
  return order / 4 == step ? static_cast<Order>(order % 4) : Order::kNone;
}

// Returns when every rank knows.
absl::Status Wishes::Place(int64_t step) {
  absl::MutexLock lock(&links_.mutex());
  FT_RETURN_IF_ERROR(links_.WhyOver());
  const Order order = wanted_.exchange(Wish::kNone);
  ordered_ = step;
  ending_ = order == Order::kSaveAndEnd;
  OrderOf(step) = Encode(step, order);
  // Who has said goodbye takes no further step.
  for (size_t rank = 1; rank < heard_.size(); ++rank) {
    heard_[rank] = links_.Left(rank);
    if (!heard_[rank]) links_.Send(rank, PeerMessageType::kOrder, TextOf(Encode(step, order)));
  }
  const auto settled = [this] {
    return links_.over() || std::all_of(heard_.begin() + 1, heard_.end(), [](bool heard) { return heard; });
  };
  const bool in_time = links_.mutex().AwaitWithTimeout(absl::Condition(&settled), timeout_);
  FT_RETURN_IF_ERROR(links_.WhyOver());
  if (in_time) return absl::OkStatus();
  std::vector<std::string> silent;
  for (size_t rank = 1; rank < heard_.size(); ++rank) {
    if (!heard_[rank] && silent.size() < kMaxNamed) silent.push_back(absl::StrCat("rank ", rank));
  }
  absl::Status status = absl::UnavailableError(
      absl::StrCat("timed out after ", absl::FormatDuration(timeout_), " in the order to save after step ",
                   step, ", waiting for ", absl::StrJoin(silent, ", ")));
  SetMissingRanks(silent, status);
  return status;
}

void Wishes::Hear(size_t rank, PeerMessageType type, absl::string_view text) {
  const bool leads = links_.rank() == 0;
  const int64_t number = NumberIn(text);
  if (type == PeerMessageType::kWish && leads) {
    if (number == 1 || number == 2) Want(static_cast<Wish>(number));
  } else if (type == PeerMessageType::kOrder && !leads) {
    OrderOf(number / 4) = number;
    links_.Send(0, PeerMessageType::kOrderHeard, TextOf(number / 4));
  } else if (type == PeerMessageType::kOrderHeard && leads) {
    if (number == ordered_) heard_[rank] = true;
  } else if (type == PeerMessageType::kGoodbye && leads) {
    heard_[rank] = true;
  }
}

}  // namespace ft
