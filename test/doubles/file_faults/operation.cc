#include "test/doubles/file_faults/operation.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdio>
#include <cstring>

#include "test/doubles/file_faults/real_call.h"

namespace ft::file_faults {
namespace {

constexpr uint32_t kMagic = 0x46544646;
// What stands before the paths and the data of each record; record.py unpacks it.
struct RecordHeader {
  uint32_t magic;
  uint32_t kind;
  int32_t rank;
  int32_t pid;
  uint64_t begin;
  uint64_t end;
  uint64_t number;  // of its process, from 1; 0: a mark
  int64_t result;
  uint64_t device;
  uint64_t inode;
  int64_t offset;
  uint64_t length;
  uint32_t flags;
  uint32_t path_bytes;
  uint32_t path2_bytes;
  uint32_t padding;
  uint64_t data_bytes;
};
static_assert(sizeof(RecordHeader) == 104);

pthread_once_t once = PTHREAD_ONCE_INIT;
std::atomic<SyscallFunction> real_syscall{nullptr};
Settings settings;
SharedState* state = nullptr;
Slot* slot = nullptr;

void InForkedChild() { slot = TakeSlot(state, settings.rank, settings.launched); }

void Initialize() {
  settings = ReadSettings();
  if (settings.prefix == nullptr) return;
  state = MapState(settings.state);
  if (state == nullptr) {
    dprintf(STDERR_FILENO, "file_faults: cannot map FT_FAULTS_STATE=%s\n", settings.state);
    _exit(64);
  }
  slot = TakeSlot(state, settings.rank, settings.launched);
  pthread_atfork(nullptr, nullptr, InForkedChild);
}

__attribute__((constructor)) void InitializeEarly() { Enabled(); }

// The process, or this thread of it.
[[noreturn]] void Stop(const Fault& fault) {
  if (fault.damage == Damage::kHang)
    while (true) pause();
  if (fault.damage == Damage::kKillAll) KillOthers(state);
  kill(getpid(), SIGKILL);
  while (true) pause();
}

bool Stops(const Fault& fault) {
  return fault.damage == Damage::kKill || fault.damage == Damage::kKillAll || fault.damage == Damage::kHang;
}

size_t BytesOf(const Operation& operation) {
  size_t bytes = 0;
  for (int i = 0; i < operation.pieces; ++i) bytes += operation.data[i].iov_len;
  return bytes;
}

// Whether this is the call that the fault waits for, in which case it has struck from now on.
bool Strikes(const Fault& fault, const Operation& operation, uint64_t number) {
  if (number != settings.at || (settings.fault_rank >= 0 && settings.fault_rank != settings.rank))
    return false;
  // One byte cannot be written by half.
  if (fault.damage == Damage::kShort && (!IsWrite(operation.kind) || BytesOf(operation) < 2)) return false;
  uint32_t not_yet = 0;
  if (!state->fired.compare_exchange_strong(not_yet, 1)) return false;
  state->fired_kind = static_cast<uint32_t>(operation.kind);
  state->fired_number = number;
  state->fired_pid = getpid();
  state->fired_rank = settings.rank;
  return true;
}

void Decide(const Operation& operation, Ticket* ticket) {
  const Fault* fault = settings.fault;
  if (fault == nullptr) return;
  const bool first = Strikes(*fault, operation, ticket->number);
  if (!first && state->fired.load() == 0) return;
  if (!Covers(first ? fault->first : fault->later, operation.kind, operation.makes_name)) return;
  const bool half_first = first && fault->half_first && IsWrite(operation.kind) && BytesOf(operation) >= 2;
  if (fault->damage == Damage::kShort || half_first) {
    ticket->half = true;
  } else {
    ticket->fault = fault;
  }
}

void AppendRecord(const RecordHeader& header, const Operation& operation) {
  iovec pieces[kMostPieces + 3];
  int count = 0;
  pieces[count++] = {const_cast<RecordHeader*>(&header), sizeof(header)};
  pieces[count++] = {const_cast<char*>(operation.path), header.path_bytes};
  pieces[count++] = {const_cast<char*>(operation.path2), header.path2_bytes};
  size_t left = header.data_bytes;
  for (int i = 0; i < operation.pieces && left > 0; ++i) {
    const size_t bytes = operation.data[i].iov_len < left ? operation.data[i].iov_len : left;
    pieces[count++] = {operation.data[i].iov_base, bytes};
    left -= bytes;
  }
  // Opened each time: programs close descriptors they do not know. One append is not mixed with another's.
  const int fd = static_cast<int>(
      RealCall(SYS_openat, AT_FDCWD, settings.record, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  const size_t whole = sizeof(header) + header.path_bytes + header.path2_bytes + header.data_bytes;
  if (fd < 0 || RealCall(SYS_writev, fd, pieces, count) != static_cast<long>(whole))
    NoteUnseen(state, "the record cannot be written", settings.record);
  if (fd >= 0) close(fd);
}

}  // namespace

SyscallFunction RealSyscall() {
  SyscallFunction found = real_syscall.load(std::memory_order_acquire);
  if (found != nullptr) return found;
  found = reinterpret_cast<SyscallFunction>(dlsym(RTLD_NEXT, "syscall"));
  real_syscall.store(found, std::memory_order_release);
  return found;
}

bool Enabled() {
  pthread_once(&once, Initialize);
  return settings.prefix != nullptr;
}

Where PlaceOf(const FullPath& path) {
  if (Under(settings.prefix, path)) return Where::kTracked;
  return settings.mark != nullptr && strcmp(settings.mark, path.text) == 0 ? Where::kMark : Where::kElsewhere;
}

void SetIdentity(const struct stat& info, Operation* operation) {
  operation->device = info.st_dev;
  operation->inode = info.st_ino;
}

Where Identify(int fd, FullPath* path, Operation* operation) {
  if (!Enabled()) return Where::kElsewhere;
  const int error = errno;
  struct stat info;
  const bool found = Locate(fd, path, &info);
  errno = error;
  if (!found) return Where::kElsewhere;
  operation->path = path->text;
  SetIdentity(info, operation);
  return PlaceOf(*path);
}

void Unseen(const char* what, const char* path) { NoteUnseen(state, what, path); }

bool FailsBefore(const Ticket& ticket) {
  return ticket.fault != nullptr && ticket.fault->damage == Damage::kError && !settings.after;
}

bool FailsAfter(const Ticket& ticket) {
  return ticket.fault != nullptr && ticket.fault->damage == Damage::kError && settings.after;
}

Ticket Begin(const Operation& operation) {
  Ticket ticket;
  if (operation.kind != Kind::kMark) {
    slot->kinds[static_cast<uint32_t>(operation.kind)].fetch_add(1);
    ticket.number = slot->calls.fetch_add(1) + 1;
    Decide(operation, &ticket);
  }
  if (ticket.fault != nullptr && Stops(*ticket.fault) && !settings.after) Stop(*ticket.fault);
  ticket.begin = state->clock.fetch_add(1) + 1;
  return ticket;
}

void End(const Ticket& ticket, const Operation& operation, long result) {
  const uint64_t end = state->clock.fetch_add(1) + 1;
  if (settings.record != nullptr) {
    const bool data = result > 0 && operation.pieces > 0;
    AppendRecord(
        {kMagic, static_cast<uint32_t>(operation.kind), settings.rank, getpid(), ticket.begin, end,
         ticket.number, result, operation.device, operation.inode, operation.offset, operation.length,
         operation.flags, static_cast<uint32_t>(strlen(operation.path)),
         static_cast<uint32_t>(strlen(operation.path2)), 0, data ? static_cast<uint64_t>(result) : 0},
        operation);
  }
  if (ticket.fault != nullptr && Stops(*ticket.fault)) Stop(*ticket.fault);
}

}  // namespace ft::file_faults
