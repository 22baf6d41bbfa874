// One numbered call: begun (it gets its number, the fault may strike), performed, recorded.
#pragma once

#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "test/doubles/file_faults/fault.h"
#include "test/doubles/file_faults/shared_state.h"
#include "test/doubles/file_faults/tracked_path.h"

namespace ft::file_faults {

// Pieces of data in one call: with header and paths no more than one append to the record takes. Longer
// writes are left to the caller's next one, as the system does with more than 1024.
inline constexpr int kMostPieces = 1000;

// What a record holds of a call beside its number and result.
struct Operation {
  Kind kind;
  const char* path = "";
  const char* path2 = "";  // a rename's and a link's new name; what a symbolic link points to
  uint64_t device = 0;     // the file's identity: of what was opened, written, synced, linked
  uint64_t inode = 0;
  int64_t offset = 0;   // of a write, a fallocate; the size of a truncate
  uint64_t length = 0;  // asked for
  uint32_t flags = 0;   // of open, rename, fallocate; of a write, those of its descriptor
  const iovec* data = nullptr;
  int pieces = 0;
  bool makes_name = false;
};

enum class Where { kElsewhere, kTracked, kMark };

// False: there is no prefix, all calls go straight through.
bool Enabled();

Where PlaceOf(const FullPath& path);

// Locates a descriptor: the fields of `operation` that describe it, and where it lies. `path` is what
// operation->path points into.
Where Identify(int fd, FullPath* path, Operation* operation);
void SetIdentity(const struct stat& info, Operation* operation);

void Unseen(const char* what, const char* path);

// What is to happen to a call.
struct Ticket {
  uint64_t number = 0;
  uint64_t begin = 0;
  const Fault* fault = nullptr;  // null: nothing
  bool half = false;
};

// Gives the call its number. Does not return when it kills before the call.
Ticket Begin(const Operation& operation);

// Records the call and does what FT_FAULTS_WHEN=after asks for. `result`: of the call, or -errno.
void End(const Ticket& ticket, const Operation& operation, long result);

// Whether the ticket's call is to fail, before it is performed or after.
bool FailsBefore(const Ticket& ticket);
bool FailsAfter(const Ticket& ticket);

// Performs and records a call. `perform(half)` makes it, -1 and errno on failure; half: of a write, half of
// its bytes. `complete(result)` adds to the operation what only the result tells.
template <typename Perform, typename Complete>
long Run(Operation* operation, Perform perform, Complete complete) {
  const Ticket ticket = Begin(*operation);
  long result = -1;
  int error = 0;
  if (FailsBefore(ticket)) {
    error = ticket.fault->error;
  } else {
    result = perform(ticket.half);
    error = errno;
    complete(result);
  }
  End(ticket, *operation, result < 0 ? -error : result);
  if (result >= 0 && FailsAfter(ticket)) {  // it was done, and the caller is told otherwise
    result = -1;
    error = ticket.fault->error;
  }
  errno = error;
  return result;
}

template <typename Perform>
long Run(Operation* operation, Perform perform) {
  return Run(operation, [&](bool) { return perform(); }, [](long) {});
}

}  // namespace ft::file_faults
