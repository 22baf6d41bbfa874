#include "test/doubles/cuda/race_watch.h"

#include "fmt/format.h"
#include "test/doubles/cuda/block.h"
#include "test/doubles/cuda/symbols.h"

namespace ft::cuda::emulation {

void Accessors::Add(const Moment& now, uint32_t first_run, bool shared) {
  const bool anew = Over(now, first_run, shared);
  if (anew || last_.run != now.run) {
    other_blocks_ = !anew;
    last_ = now;
  } else if (last_.barriers != now.barriers) {
    last_ = now;
  } else if (last_.warp != now.warp) {
    last_.warp = last_.thread = kSeveral;
  } else if (last_.warp_barriers != now.warp_barriers) {
    last_ = now;
  } else if (last_.thread != now.thread) {
    last_.thread = kSeveral;
  }
}

const char* Accessors::Racing(const Moment& now, uint32_t first_run, bool shared) const {
  if (Over(now, first_run, shared)) return nullptr;
  if (last_.run != now.run || other_blocks_) return "another block of the launch";
  if (last_.barriers != now.barriers) return nullptr;
  if (last_.warp != now.warp) return "another warp, with no __syncthreads between";
  if (last_.warp_barriers != now.warp_barriers || last_.thread == now.thread) return nullptr;
  return "another lane of the warp, with no __syncwarp between";
}

RaceWatch& RaceWatch::Own() {
  static thread_local RaceWatch watch;
  return watch;
}

void RaceWatch::BeginGrid(const void* dynamic_shared, size_t dynamic_shared_bytes) {
  first_run_ = run_ + 1;
  shared_begin_ = reinterpret_cast<uintptr_t>(dynamic_shared);
  shared_end_ = shared_begin_ + dynamic_shared_bytes;
  // What is known of earlier launches is over; their buffers may be gone.
  constexpr size_t kMostPages = 4096;
  if (pages_.size() > kMostPages) {
    pages_.clear();
    found_.fill({});
  }
}

void RaceWatch::Note(const void* address, size_t bytes, Access access, const void* code) {
  if (inside_) return;
  Block& block = Block::Own();
  if (!block.running() || block.OnStack(address)) return;
  inside_ = true;
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(address) + kUnit - 1) / kUnit * kUnit,
                  end = (reinterpret_cast<uintptr_t>(address) + bytes) / kUnit * kUnit;
  const Moment now = block.Now(run_);
  for (uintptr_t at = begin; at < end; at += kUnit) {
    Place& place = At(at);
    if (access != Access::kRead || !place.reads.Knows(now)) NotePlace(place, now, IsShared(at), access, code);
  }
  inside_ = false;
}

void RaceWatch::NotePlace(Place& place, const Moment& now, bool shared, Access access, const void* code) {
  if (const char* whom = place.writes.Racing(now, first_run_, shared))
    Blame(access, "written", whom, shared, code);
  if (const char* whom = place.atomics.Racing(now, first_run_, shared);
      whom != nullptr && access != Access::kAtomic)
    Blame(access, "changed atomically", whom, shared, code);
  if (const char* whom = place.reads.Racing(now, first_run_, shared);
      whom != nullptr && access != Access::kRead)
    Blame(access, "read", whom, shared, code);
  Accessors& own =
      access == Access::kRead ? place.reads : (access == Access::kWrite ? place.writes : place.atomics);
  own.Add(now, first_run_, shared);
}

RaceWatch::Place& RaceWatch::At(uintptr_t address) {
  const uintptr_t number = address / kPageBytes;
  FoundPage& found = found_[number % found_.size()];
  if (found.page == nullptr || found.number != number) {
    std::unique_ptr<Page>& page = pages_[number];
    if (page == nullptr) page = std::make_unique<Page>();
    found = {number, page.get()};
  }
  return (*found.page)[address % kPageBytes / kUnit];
}

bool RaceWatch::IsShared(uintptr_t address) const {
  if (address >= shared_begin_ && address < shared_end_) return true;
  const AddressRange fixed = StaticShared();
  return address >= fixed.begin && address < fixed.end;
}

void RaceWatch::Blame(Access access, const char* other_access, const char* whom, bool shared,
                      const void* code) {
  const char* verb = access == Access::kRead ? "reads" : (access == Access::kWrite ? "writes" : "changes");
  Block::Own().Blame(fmt::format("a race in {} memory: {} {} what was {} by {}; in the code at {:#x}",
                                 shared ? "shared" : "global", Block::Own().WhoRuns(), verb, other_access,
                                 whom, OffsetInProgram(code)));
}

}  // namespace ft::cuda::emulation
