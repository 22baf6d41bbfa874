#include "test/doubles/cuda/block.h"

#include <algorithm>
#include <map>

#include "fmt/format.h"

constinit thread_local ft::cuda::emulation::Extent3 threadIdx = {}, blockIdx = {}, blockDim = {},
                                                    gridDim = {};

namespace ft::cuda::emulation {
namespace {

// What a lane gets from one that is not there: garbage.
constexpr uint64_t kGarbage = 0xCDCDCDCDCDCDCDCDu;

const char* Name(Meeting meeting) {
  switch (meeting) {
    case Meeting::kSyncWarp:
      return "__syncwarp";
    case Meeting::kShuffle:
      return "__shfl_sync";
    case Meeting::kShuffleUp:
      return "__shfl_up_sync";
    case Meeting::kShuffleDown:
      return "__shfl_down_sync";
    case Meeting::kShuffleXor:
      return "__shfl_xor_sync";
    case Meeting::kBallot:
      return "a vote";
    case Meeting::kLanes:
      return "a load of matrices";
    case Meeting::kProduct:
      return "a product of matrices";
  }
  return "?";
}

std::string Show(Place place) { return fmt::format("{}:{}", place.file, place.line); }

}  // namespace

Block& Block::Own() {
  static thread_local Block block;
  return block;
}

bool Block::Run(const std::function<void()>& body, Order order, std::string& problem) {
  const int count = static_cast<int>(blockDim.x * blockDim.y * blockDim.z);
  threads_.assign(count, {});
  ready_.resize(count);
  ready_begin_ = ready_count_ = 0;
  body_ = &body;
  order_ = order;
  started_ = exited_ = waiting_ = 0;
  at_warp_.fill(0);
  barriers_ = 0;
  warp_barriers_.fill(0);
  torn_ = false;
  misuse_.clear();
  running_ = -1;
  SwitchTo(NextFiber());
  running_ = -1;
  if (exited_ == count && misuse_.empty()) return true;
  problem = misuse_.empty() ? Stuck() : misuse_;
  Abandon();
  return false;
}

void Block::FiberEntry() {
  Own().Loop();
  __builtin_unreachable();
}

void Block::Loop() {
  for (;;) {
    const int fiber = running_;
    while (CanStart() && misuse_.empty()) {
      const int count = static_cast<int>(threads_.size());
      const int thread = order_ == Order::kAscending ? started_ : count - 1 - started_;
      ++started_;
      Begin(thread);
      (*body_)();
      threads_[current_].state = State::kExited;
      ++exited_;
      if (ready_count_ > 0) break;  // those first: they are close to each other
    }
    idle_.push_back(fiber);
    SwitchTo(NextFiber());
  }
}

void Block::Begin(int thread) {
  current_ = thread;
  Thread& t = threads_[thread];
  const unsigned i = static_cast<unsigned>(thread);
  t.index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
  t.state = State::kRunning;
  t.fiber = running_;
  threadIdx = t.index;
}

int Block::NextFiber() {
  if (!misuse_.empty()) return -1;
  if (ready_count_ > 0) {
    current_ = ready_[ready_begin_];
    ready_begin_ = (ready_begin_ + 1) % ready_.size();
    --ready_count_;
    threads_[current_].state = State::kRunning;
    return threads_[current_].fiber;
  }
  if (!CanStart()) return -1;
  if (idle_.empty()) {
    idle_.push_back(static_cast<int>(fibers_.size()));
    fibers_.push_back(std::make_unique<Fiber>(&Block::FiberEntry, idle_.back()));
  }
  const int fiber = idle_.back();
  idle_.pop_back();
  return fiber;
}

void Block::SwitchTo(int fiber) {
  const int from = running_;
  if (from == fiber) return;  // the fiber that became idle last starts the next thread
  running_ = fiber;
  Fiber::Switch(from < 0 ? main_ : *fibers_[from], fiber < 0 ? main_ : *fibers_[fiber]);
}

void Block::Suspend() {
  const int self = current_;
  SwitchTo(NextFiber());
  current_ = self;
  threadIdx = threads_[self].index;
}

void Block::Ready(int thread) {
  threads_[thread].state = State::kReady;
  ready_[(ready_begin_ + ready_count_) % ready_.size()] = thread;
  ++ready_count_;
}

int Block::Meet(Vote vote, bool predicate, Place place) {
  Thread& self = threads_[current_];
  self.place = place;
  self.state = State::kAtBarrier;
  if (waiting_ == 0) {
    barrier_ = place;
    vote_ = vote;
    votes_ = 0;
  }
  if (!(barrier_ == place)) torn_ = true;
  ++waiting_;
  votes_ += predicate ? 1 : 0;
  const int count = static_cast<int>(threads_.size());
  if (waiting_ < count || torn_) {
    Suspend();
    return static_cast<int>(threads_[current_].result);
  }
  waiting_ = 0;
  ++barriers_;
  int result = votes_;
  if (vote_ == Vote::kOr) result = votes_ > 0;
  if (vote_ == Vote::kAnd) result = votes_ == count;
  for (int i = 0; i < count; ++i) {
    const int thread = order_ == Order::kAscending ? i : count - 1 - i;
    threads_[thread].result = static_cast<uint64_t>(result);
    if (thread != current_) Ready(thread);
  }
  self.state = State::kRunning;
  return result;
}

uint64_t Block::Meet(const Message& message, Place place) {
  Thread& self = threads_[current_];
  const unsigned own = 1u << lane();
  const int warp = current_ / kWarp, first = warp * kWarp;
  self.place = place;
  self.message = message;
  self.state = State::kAtWarp;
  if ((message.mask & own) == 0) {
    misuse_ = fmt::format("{} is not in its own mask", Who(self));
  } else if (message.width < 1 || message.width > kWarp || (message.width & (message.width - 1)) != 0) {
    misuse_ = fmt::format("{}: the width {} is not a power of two up to 32", Who(self), message.width);
  }
  at_warp_[warp] |= own;
  if (!misuse_.empty() || (at_warp_[warp] & message.mask) != message.mask || !Complete(first, message.mask)) {
    Suspend();
    return threads_[current_].result;
  }
  Answer(first, message.mask);
  if (message.meeting == Meeting::kSyncWarp && message.mask == kAllLanes) ++warp_barriers_[warp];
  at_warp_[warp] &= ~message.mask;
  for (unsigned i = 0; i < kWarp; ++i) {
    const unsigned lane = order_ == Order::kAscending ? i : kWarp - 1 - i;
    const int thread = first + static_cast<int>(lane);
    if ((message.mask >> lane & 1) != 0 && thread != current_) Ready(thread);
  }
  self.state = State::kRunning;
  return self.result;
}

// Whether the lanes, all of which wait for lanes, wait for each other.
bool Block::Complete(int first, unsigned mask) const {
  const Thread& self = threads_[current_];
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    const Thread& other = threads_[first + lane];
    if (other.message.meeting != self.message.meeting || other.message.mask != mask ||
        !(other.place == self.place))
      return false;
  }
  return true;
}

void Block::Answer(int first, unsigned mask) {
  const Meeting meeting = threads_[current_].message.meeting;
  if (meeting == Meeting::kProduct) return Multiply(first);
  if (meeting == Meeting::kLanes) {
    std::array<uint64_t, kWarp>& said = said_[first / kWarp];
    for (int lane = 0; lane < kWarp; ++lane) said[lane] = threads_[first + lane].message.value;
    for (int lane = 0; lane < kWarp; ++lane)
      threads_[first + lane].result = reinterpret_cast<uint64_t>(said.data());
    return;
  }
  unsigned ballot = 0;
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if ((mask >> lane & 1) != 0 && threads_[first + lane].message.value != 0) ballot |= 1u << lane;
  }
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    Thread& thread = threads_[first + lane];
    if (thread.message.meeting == Meeting::kBallot || thread.message.meeting == Meeting::kSyncWarp) {
      thread.result = ballot;
      continue;
    }
    const unsigned source = Exchange(first, lane);
    thread.result = (mask >> source & 1) != 0 ? threads_[first + source].message.value : kGarbage;
  }
}

// The lane that a lane's shuffle reads, by the manual: a source beyond the segment of `width` lanes is the
// lane itself (for xor: only beyond its end).
unsigned Block::Exchange(int first, unsigned lane) const {
  const Message& message = threads_[first + lane].message;
  const unsigned width = static_cast<unsigned>(message.width), begin = lane & ~(width - 1);
  const unsigned argument = static_cast<unsigned>(message.argument);
  switch (message.meeting) {
    case Meeting::kShuffle:
      return begin | (argument & (width - 1));
    case Meeting::kShuffleUp:
      return argument > lane - begin ? lane : lane - argument;
    case Meeting::kShuffleDown:
      return argument >= width - (lane - begin) ? lane : lane + argument;
    default:
      return (lane ^ argument) >= begin + width ? lane : lane ^ argument;
  }
}

// Where elements lie in the parts of lanes: PTX ISA, mma.m16n8k16. Sums are rounded once.
void Block::Multiply(int first) const {
  const auto part = [&](int lane) -> const ProductPart& {
    return *reinterpret_cast<const ProductPart*>(threads_[first + lane].message.value);
  };
  const auto to_float = part(0).to_float;
  const auto element = [&](uint32_t word, int i) { return to_float(static_cast<uint16_t>(word >> 16 * i)); };
  float a[16][16], b[16][8];
  for (int lane = 0; lane < kWarp; ++lane) {
    const int at = lane / 4, pair = lane % 4 * 2;
    for (int i = 0; i < 2; ++i) {
      for (int quarter = 0; quarter < 4; ++quarter)
        a[at + quarter % 2 * 8][pair + i + quarter / 2 * 8] = element(part(lane).a[quarter], i);
      for (int half = 0; half < 2; ++half) b[pair + i + half * 8][at] = element(part(lane).b[half], i);
    }
  }
  for (int lane = 0; lane < kWarp; ++lane) {
    for (int e = 0; e < 4; ++e) {
      const int row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;
      double sum = part(lane).sums[e];
      for (int k = 0; k < 16; ++k) sum += static_cast<double>(a[row][k]) * static_cast<double>(b[k][column]);
      part(lane).sums[e] = static_cast<float>(sum);
    }
  }
}

std::string Block::WhoRuns() const {
  return fmt::format("thread ({}, {}, {})", threadIdx.x, threadIdx.y, threadIdx.z);
}

std::string Block::Who(const Thread& thread) const {
  const std::string at = fmt::format("thread ({}, {}, {})", thread.index.x, thread.index.y, thread.index.z);
  if (thread.state == State::kAtBarrier)
    return fmt::format("{} at __syncthreads, {}", at, Show(thread.place));
  return fmt::format("{} at {} of mask {:#010x}, {}", at, Name(thread.message.meeting), thread.message.mask,
                     Show(thread.place));
}

// Groups of threads that wait alike, each by its first thread and number, and how many have exited.
std::string Block::Stuck() const {
  std::vector<std::pair<const Thread*, int>> groups;
  for (const Thread& thread : threads_) {
    if (thread.state == State::kExited) continue;
    const auto alike = [&](const std::pair<const Thread*, int>& group) {
      const Thread& other = *group.first;
      return other.state == thread.state && other.place == thread.place &&
             (thread.state == State::kAtBarrier ||
              (other.message.meeting == thread.message.meeting && other.message.mask == thread.message.mask));
    };
    const auto found = std::find_if(groups.begin(), groups.end(), alike);
    if (found != groups.end()) {
      ++found->second;
    } else {
      groups.emplace_back(&thread, 1);
    }
  }
  std::string text = "threads wait for each other in vain: ";
  for (size_t i = 0; i < groups.size() && i < 6; ++i) {
    if (i > 0) text += "; ";
    text += Who(*groups[i].first);
    if (groups[i].second > 1) text += fmt::format(", and {} more", groups[i].second - 1);
  }
  if (groups.size() > 6) text += fmt::format("; and {} more places", groups.size() - 6);
  return text + fmt::format("; {} of {} have exited", exited_, threads_.size());
}

// Fibers that still hold threads begin anew.
void Block::Abandon() {
  idle_.clear();
  for (size_t i = 0; i < fibers_.size(); ++i) {
    fibers_[i]->Restart();
    idle_.push_back(static_cast<int>(i));
  }
}

int MeetBlock(Vote vote, bool predicate, Place place) { return Block::Own().Meet(vote, predicate, place); }
uint64_t MeetWarp(const Message& message, Place place) { return Block::Own().Meet(message, place); }
unsigned OwnLane() { return Block::Own().lane(); }

void MeetForProduct(ProductPart& part, Place place) {
  MeetWarp({Meeting::kProduct, kAllLanes, reinterpret_cast<uint64_t>(&part), 0, kWarp}, place);
}

const uint64_t* MeetLanes(uint64_t value, Place place) {
  return reinterpret_cast<const uint64_t*>(MeetWarp({Meeting::kLanes, kAllLanes, value, 0, kWarp}, place));
}

void CheckAligned(const void* address, const char* what) {
  if (reinterpret_cast<uintptr_t>(address) % 16 == 0) return;
  Block::Own().Blame(
      fmt::format("{}: {} is no multiple of 16 bytes: {}", Block::Own().WhoRuns(), what, address));
}

}  // namespace ft::cuda::emulation
