#include "test/doubles/file_faults/shared_state.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "test/doubles/file_faults/real_call.h"

namespace ft::file_faults {
namespace {

// Field 22 of /proc/<pid>/stat; 0 when there is no such process.
uint64_t StartTime(pid_t pid) {
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/stat", static_cast<int>(pid));
  const int fd = static_cast<int>(RealCall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
  if (fd < 0) return 0;
  char text[1024];
  const ssize_t got = read(fd, text, sizeof(text) - 1);
  close(fd);
  if (got <= 0) return 0;
  text[got] = '\0';
  const char* at = strrchr(text, ')');  // a program's name may hold anything
  for (int field = 2; at != nullptr && field < 22; ++field) at = strchr(at + 1, ' ');
  return at == nullptr ? 0 : strtoull(at, nullptr, 10);
}

}  // namespace

SharedState* MapState(const char* path) {
  int fd = -1;
  if (path != nullptr) {
    fd = static_cast<int>(RealCall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (fd < 0 || RealCall(SYS_ftruncate, fd, sizeof(SharedState)) != 0) return nullptr;
  }
  const long data = RealCall(SYS_mmap, nullptr, sizeof(SharedState), PROT_READ | PROT_WRITE,
                             MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
  if (fd >= 0) close(fd);
  return data == -1 ? nullptr : reinterpret_cast<SharedState*>(data);
}

Slot* TakeSlot(SharedState* state, int rank, bool launched) {
  const uint32_t index = state->slots.fetch_add(1);
  if (index >= kSlots) {
    NoteUnseen(state, "fork", "more processes than the shared state has room for");
    return &state->slot[kSlots - 1];
  }
  Slot* slot = &state->slot[index];
  slot->rank = rank;
  slot->launched = launched ? 1 : 0;
  slot->started = StartTime(getpid());
  slot->pid.store(getpid());
  return slot;
}

void KillOthers(SharedState* state) {
  const uint32_t slots = state->slots.load() < kSlots ? state->slots.load() : kSlots;
  for (uint32_t i = 0; i < slots; ++i) {
    const Slot& slot = state->slot[i];
    const pid_t pid = slot.pid.load();
    if (pid <= 0 || pid == getpid() || slot.launched == 0) continue;
    if (slot.started != 0 && slot.started == StartTime(pid)) kill(pid, SIGKILL);
  }
}

void NoteUnseen(SharedState* state, const char* what, const char* path) {
  uint32_t none = 0;
  if (!state->unseen.compare_exchange_strong(none, 1)) return;
  snprintf(state->unseen_what, sizeof(state->unseen_what), "%s: %s", what, path);
}

}  // namespace ft::file_faults
