#include "test/doubles/file_faults/fault.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ft::file_faults {
namespace {

constexpr Fault kFaults[] = {
    {"kill", Damage::kKill, 0, Scope::kAll, Scope::kNone},
    {"kill_all", Damage::kKillAll, 0, Scope::kAll, Scope::kNone},
    {"hang", Damage::kHang, 0, Scope::kAll, Scope::kNone},
    {"short", Damage::kShort, 0, Scope::kAll, Scope::kNone},
    {"eio", Damage::kError, EIO, Scope::kAll, Scope::kNone},
    {"eio_sticky", Damage::kError, EIO, Scope::kAll, Scope::kAll},
    {"enospc", Damage::kError, ENOSPC, Scope::kAll, Scope::kNone},
    {"enospc_sticky", Damage::kError, ENOSPC, Scope::kAll, Scope::kNeedsSpace},
    {"full", Damage::kError, ENOSPC, Scope::kNeedsSpace, Scope::kNeedsSpace, /*half_first=*/true},
    {"erofs", Damage::kError, EROFS, Scope::kAll, Scope::kNone},
    {"erofs_sticky", Damage::kError, EROFS, Scope::kAll, Scope::kAll},
    {"readonly", Damage::kError, EACCES, Scope::kChangesFolder, Scope::kChangesFolder},
};

[[noreturn]] void Refuse(const char* name, const char* value) {
  dprintf(STDERR_FILENO, "file_faults: %s=%s means nothing\n", name, value);
  _exit(64);
}

// An integer of at least `least`.
long Number(const char* name, const char* value, long least) {
  char* end = nullptr;
  errno = 0;
  const long number = strtol(value, &end, 10);
  if (errno != 0 || end == value || *end != '\0' || number < least) Refuse(name, value);
  return number;
}

const char* Variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

const Fault* FindFault(const char* name) {
  for (const Fault& fault : kFaults)
    if (strcmp(fault.name, name) == 0) return &fault;
  Refuse("FT_FAULTS_DO", name);
}

}  // namespace

Settings ReadSettings() {
  Settings settings;
  settings.prefix = Variable("FT_FAULTS_PREFIX");
  if (settings.prefix == nullptr) return settings;
  const size_t length = strlen(settings.prefix);
  if (settings.prefix[0] != '/' || length < 2 || settings.prefix[length - 1] == '/')
    Refuse("FT_FAULTS_PREFIX", settings.prefix);
  settings.record = Variable("FT_FAULTS_RECORD");
  settings.mark = Variable("FT_FAULTS_MARK");
  settings.state = Variable("FT_FAULTS_STATE");
  if (const char* rank = Variable("RANK")) {
    settings.rank = static_cast<int>(Number("RANK", rank, 0));
    settings.launched = true;
  }
  const char* at = Variable("FT_FAULTS_AT");
  if (at == nullptr) return settings;
  settings.at = static_cast<uint64_t>(Number("FT_FAULTS_AT", at, 1));
  const char* what = Variable("FT_FAULTS_DO");
  settings.fault = FindFault(what == nullptr ? "" : what);
  if (const char* when = Variable("FT_FAULTS_WHEN")) {
    settings.after = strcmp(when, "after") == 0;
    if (!settings.after && strcmp(when, "before") != 0) Refuse("FT_FAULTS_WHEN", when);
  }
  if (const char* rank = Variable("FT_FAULTS_RANK"))
    settings.fault_rank = static_cast<int>(Number("FT_FAULTS_RANK", rank, -1));
  return settings;
}

bool IsWrite(Kind kind) {
  return kind == Kind::kWrite || kind == Kind::kPwrite || kind == Kind::kWritev || kind == Kind::kPwritev;
}

bool Covers(Scope scope, Kind kind, bool makes_name) {
  const bool changes_folder = (kind == Kind::kOpen && makes_name) || kind == Kind::kRename ||
                              kind == Kind::kLink || kind == Kind::kSymlink || kind == Kind::kMkdir;
  const bool removes = kind == Kind::kUnlink || kind == Kind::kRmdir;
  const bool syncs = kind == Kind::kFsync || kind == Kind::kFdatasync || kind == Kind::kSync;
  switch (scope) {
    case Scope::kNone:
      return false;
    case Scope::kAll:
      return true;
    case Scope::kNeedsSpace:
      return changes_folder || syncs || IsWrite(kind) || kind == Kind::kFallocate;
    case Scope::kChangesFolder:
      return changes_folder || removes;
  }
  return false;
}

}  // namespace ft::file_faults
