#include "runtime/cost/replay.h"

#include <algorithm>
#include <limits>

namespace ft {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// The item that a stream is at.
struct Running {
  std::vector<int> items;  // of the stream
  size_t next = 0;
  int item = -1;  // -1: none has begun that is not done
  bool in_body = false;
  double left = 0;  // of latency or body, at full speed
  double free_since = 0;
};

class Player {
 public:
  Player(const std::vector<ReplayItem>& items, int streams)
      : items_(items), done_(items.size()), is_done_(items.size()), streams_(static_cast<size_t>(streams)) {
    for (size_t i = 0; i < items.size(); ++i)
      streams_[static_cast<size_t>(items[i].stream)].items.push_back(static_cast<int>(i));
  }

  std::vector<ReplayedItem> Play() {
    BeginAll();
    for (double step = NextEvent(); step != kNever; step = NextEvent()) {
      Advance(step);
      BeginAll();
    }
    return std::move(done_);
  }

 private:
  // Items without cost are done at once and may let others begin.
  void BeginAll() {
    for (bool changed = true; changed;) {
      changed = false;
      for (Running& stream : streams_)
        while (stream.item < 0 && TryBegin(stream)) changed = true;
    }
  }

  bool TryBegin(Running& stream) {
    if (stream.next == stream.items.size()) return false;
    const int number = stream.items[stream.next];
    const ReplayItem& item = items_[static_cast<size_t>(number)];
    ReplayedItem& times = done_[static_cast<size_t>(number)];
    times.reached = times.ready = stream.free_since;
    times.last = -1;
    for (const int earlier : item.after) {
      if (!is_done_[static_cast<size_t>(earlier)]) return false;
      const double end = done_[static_cast<size_t>(earlier)].end;
      if (times.last < 0 || end > done_[static_cast<size_t>(times.last)].end) times.last = earlier;
      times.ready = std::max(times.ready, end);
    }
    if (std::max(times.ready, item.launched_s) > now_) return false;
    times.begin = std::max(times.ready, item.launched_s);
    ++stream.next;
    stream.item = number;
    stream.in_body = item.cost.latency_s == 0;
    stream.left = stream.in_body ? item.cost.body_s : item.cost.latency_s;
    if (stream.left == 0) Proceed(stream);
    return true;
  }

  // From latency to body, or to the end.
  void Proceed(Running& stream) {
    const InstructionCost& cost = items_[static_cast<size_t>(stream.item)].cost;
    if (!stream.in_body && cost.body_s > 0) {
      stream.in_body = true;
      stream.left = cost.body_s;
      return;
    }
    done_[static_cast<size_t>(stream.item)].end = now_;
    is_done_[static_cast<size_t>(stream.item)] = true;
    stream.free_since = now_;
    stream.item = -1;
  }

  const InstructionCost& CostOf(const Running& stream) const {
    return items_[static_cast<size_t>(stream.item)].cost;
  }

  // Times that what a stream runs takes longer now.
  double Slowed(const Running& stream) const {
    if (!stream.in_body) return 1;
    const InstructionCost& cost = CostOf(stream);
    double by_transfers = 1, by_kernels = 1, sharing = 0;
    for (const Running& other : streams_) {
      if (other.item < 0 || !other.in_body) continue;
      const InstructionCost& beside = CostOf(other);
      if (beside.is_transfer())
        by_transfers = std::max(by_transfers, cost.beside_transfer[static_cast<size_t>(beside.kind)]);
      if (beside.occupies == Occupies::kDevice) by_kernels = cost.beside_kernels;
      if (beside.occupies == cost.occupies) ++sharing;
    }
    if (cost.is_transfer()) return by_kernels * sharing;
    return cost.occupies == Occupies::kDevice ? by_transfers : 1;
  }

  // Seconds until the next latency or body is over, or something is launched that waits for nothing else.
  double NextEvent() const {
    double next = kNever;
    for (const Running& stream : streams_) {
      if (stream.item >= 0) next = std::min(next, stream.left * Slowed(stream));
      if (stream.item >= 0 || stream.next == stream.items.size()) continue;
      const double launched = items_[static_cast<size_t>(stream.items[stream.next])].launched_s;
      if (launched > now_) next = std::min(next, launched - now_);
    }
    return next;
  }

  void Advance(double seconds) {
    std::vector<double> slowed(streams_.size(), 1);
    for (size_t i = 0; i < streams_.size(); ++i)
      if (streams_[i].item >= 0) slowed[i] = Slowed(streams_[i]);
    now_ += seconds;
    std::vector<Running*> over;
    for (size_t i = 0; i < streams_.size(); ++i) {
      if (streams_[i].item < 0) continue;
      // What ends with this event has exactly this left.
      if (streams_[i].left * slowed[i] <= seconds)
        over.push_back(&streams_[i]);
      else
        streams_[i].left -= seconds / slowed[i];
    }
    for (Running* stream : over) Proceed(*stream);
  }

  const std::vector<ReplayItem>& items_;
  std::vector<ReplayedItem> done_;
  std::vector<bool> is_done_;
  std::vector<Running> streams_;
  double now_ = 0;
};

}  // namespace

std::vector<ReplayedItem> Replay(const std::vector<ReplayItem>& items, int streams) {
  return Player(items, streams).Play();
}

}  // namespace ft
