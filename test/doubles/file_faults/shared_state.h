// What all processes under test share: a mapped file with one clock for all of them, the fault that has
// struck, and how many calls of each kind every process made. record.py reads the same bytes.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ft::file_faults {

// The numbers stand in records and in the state; record.py has the names.
enum class Kind : uint32_t {
  kOpen = 1,  // for writing, creating or emptying
  kWrite,
  kPwrite,
  kWritev,
  kPwritev,
  kTruncate,
  kFallocate,
  kFsync,
  kFdatasync,
  kSyncFileRange,
  kRename,
  kLink,
  kSymlink,
  kUnlink,
  kRmdir,
  kMkdir,
  kSync,  // sync() and syncfs()
  kMark,  // a write to the file FT_FAULTS_MARK: recorded, not counted
};
inline constexpr size_t kKinds = 24;

// One process that loaded the library.
struct Slot {
  std::atomic<int32_t> pid;
  int32_t rank;       // of the environment's RANK; 0 without one
  uint32_t launched;  // it has a RANK
  uint32_t padding;
  uint64_t started;  // its start time, in ticks since boot: tells it from a later process of that pid
  std::atomic<uint64_t> calls;  // numbered so far
  std::atomic<uint64_t> kinds[kKinds];
};
inline constexpr uint32_t kSlots = 1024;

struct SharedState {
  std::atomic<uint64_t> clock;  // each call takes two ticks: as it begins and as it ends
  std::atomic<uint32_t> fired;  // 1: the fault has struck; it does so once, in whatever process
  uint32_t fired_kind;
  uint64_t fired_number;
  int32_t fired_pid;
  int32_t fired_rank;
  std::atomic<uint32_t>
      unseen;  // something was done under the prefix that cannot be counted; the first is described
  std::atomic<uint32_t> slots;  // taken; may exceed kSlots
  char unseen_what[256];
  Slot slot[kSlots];
};

// Maps the file (made if missing), or memory that forked processes share when `path` is null. Null: it
// failed.
SharedState* MapState(const char* path);

// The slot of this process: taken by TakeSlot() once after MapState and once in every forked child.
Slot* TakeSlot(SharedState* state, int rank, bool launched);

// Sends SIGKILL to every other live process with a RANK that took a slot.
void KillOthers(SharedState* state);

// Notes that `what` (a function's name) was used on `path`; only the first is kept.
void NoteUnseen(SharedState* state, const char* what, const char* path);

}  // namespace ft::file_faults
