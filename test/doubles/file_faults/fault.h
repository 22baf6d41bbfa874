// Which call is to fail, and how: read from the environment once.
#pragma once

#include <cstdint>

#include "test/doubles/file_faults/shared_state.h"

namespace ft::file_faults {

// Calls that a fault strikes.
enum class Scope {
  kNone,
  kAll,
  kNeedsSpace,     // it may allocate blocks: creating, writing, syncing
  kChangesFolder,  // it makes or removes a name
};

enum class Damage {
  kError,    // the call fails
  kShort,    // half of the bytes are written
  kKill,     // SIGKILL to this process
  kKillAll,  // and to all others that have a RANK
  kHang,     // the call does not return
};

// A row of FT_FAULTS_DO.
struct Fault {
  const char* name;
  Damage damage;
  int error;                // errno, for kError
  Scope first;              // which calls number FT_FAULTS_AT it strikes at all
  Scope later;              // which calls after that one, in all processes
  bool half_first = false;  // a write that it strikes first is short instead
};

struct Settings {
  const char* prefix = nullptr;  // null: the library does nothing
  const char* record = nullptr;
  const char* mark = nullptr;
  const char* state = nullptr;
  const Fault* fault = nullptr;  // null: count alone
  uint64_t at = 0;
  bool after = false;  // the call is performed first
  int fault_rank = 0;  // -1: any
  int rank = 0;
  bool launched = false;
};

// FT_FAULTS_* and RANK. A value that means nothing ends the process with a line: a fault that is never
// injected would pass for one that was survived.
Settings ReadSettings();

// Whether `scope` has such a call. `makes_name`: of kOpen, whether it would create the file.
bool Covers(Scope scope, Kind kind, bool makes_name);

bool IsWrite(Kind kind);

}  // namespace ft::file_faults
