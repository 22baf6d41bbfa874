// Races: two threads of a kernel that access the same memory, one of them writing, with nothing between that
// orders them. On a GPU such threads run at the same time, whatever order the emulation has them run in.
//
// Ordered are, in one block, what __syncthreads lies between and, in one warp, what a __syncwarp of all lanes
// lies between (shuffles and votes order no memory); blocks of one launch never. Atomic operations do not
// race with each other. Single bytes are not watched, only what begins and ends at even addresses.
//
// Every access of device code is told to it where that is compiled with -fsanitize=thread and linked with
// watch_hooks.cc in place of that sanitizer's library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

namespace ft::cuda::emulation {

enum class Access : uint8_t { kRead, kWrite, kAtomic };

// Who accesses, and the barriers that were passed before.
struct Moment {
  uint32_t run;  // a block of a launch; ascending
  uint32_t barriers;
  uint32_t warp_barriers;  // of the warp
  int16_t warp, thread;
};

// Those who accessed a place in one way, as far as somebody may race with them.
class Accessors {
 public:
  // Runs below `first_run` are over; of shared memory, so are all but the present one.
  void Add(const Moment& now, uint32_t first_run, bool shared);

  // Whether `now` would add nothing. Whoever raced with it raced with those that are known, and was found.
  bool Knows(const Moment& now) const {
    if (last_.run != now.run || last_.barriers != now.barriers) return false;
    if (last_.warp != now.warp) return last_.warp == kSeveral;
    return last_.warp_barriers == now.warp_barriers &&
           (last_.thread == now.thread || last_.thread == kSeveral);
  }

  // With whom `now` races, in words, or null.
  const char* Racing(const Moment& now, uint32_t first_run, bool shared) const;

 private:
  static constexpr int16_t kSeveral = -1;
  bool Over(const Moment& now, uint32_t first_run, bool shared) const {
    return last_.run < first_run || (shared && last_.run != now.run);
  }

  Moment last_ = {};  // warp and thread may be several
  bool other_blocks_ = false;
};

class RaceWatch {
 public:
  // The calling thread's.
  static RaceWatch& Own();

  void BeginGrid(const void* dynamic_shared, size_t dynamic_shared_bytes);
  void BeginBlock() { ++run_; }

  // An access of the thread that is running; of any memory, at any time. A race becomes the block's problem.
  void Note(const void* address, size_t bytes, Access access, const void* code);

 private:
  static constexpr size_t kUnit = 2, kPageBytes = 4096;

  struct Place {
    Accessors reads, writes, atomics;
  };
  using Page = std::array<Place, kPageBytes / kUnit>;

  Place& At(uintptr_t address);
  void NotePlace(Place& place, const Moment& now, bool shared, Access access, const void* code);
  bool IsShared(uintptr_t address) const;
  void Blame(Access access, const char* other_access, const char* whom, bool shared, const void* code);

  uint32_t run_ = 0, first_run_ = 1;
  uintptr_t shared_begin_ = 0, shared_end_ = 0;  // dynamic
  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages_;
  struct FoundPage {
    uintptr_t number = 0;
    Page* page = nullptr;
  };
  std::array<FoundPage, 256> found_ = {};  // by the lower bits of their numbers
  bool inside_ = false;
};

}  // namespace ft::cuda::emulation
