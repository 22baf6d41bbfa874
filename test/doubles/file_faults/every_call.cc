// every_call FOLDER OUTSIDE: makes each call that is watched, by each of its names, some in FOLDER and some
// OUTSIDE of it, and prints how often it made which kind in FOLDER: "KIND COUNT" a line. It counts by itself,
// so that the library's counts have something to be compared with. Exit status 1 when a call fails.
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

enum Kind {
  kOpen,
  kWrite,
  kPwrite,
  kWritev,
  kPwritev,
  kTruncate,
  kFallocate,
  kFsync,
  kFdatasync,
  kRange,
  kRename,
  kLink,
  kSymlink,
  kUnlink,
  kRmdir,
  kMkdir,
  kSync,
  kKinds
};
constexpr const char* kNames[] = {"open",     "write",     "pwrite",  "writev",    "pwritev",
                                  "truncate", "fallocate", "fsync",   "fdatasync", "sync_file_range",
                                  "rename",   "link",      "symlink", "unlink",    "rmdir",
                                  "mkdir",    "sync"};
std::atomic<int> counts[kKinds];

// Counts a call in the folder, which is to return at least 0.
int Did(Kind kind, long result, int line) {
  ++counts[kind];
  if (result >= 0) return static_cast<int>(result);
  fprintf(stderr, "line %d: ", line);
  perror(kNames[kind]);
  exit(1);
}
#define DO(kind, call) Did(kind, call, __LINE__)

// One elsewhere.
void Outside(long result) {
  if (result >= 0) return;
  perror("outside");
  exit(1);
}

void Data(int fd) {
  char text[] = "twelve bytes";
  const iovec pieces[] = {{text, 6}, {text + 6, 6}};
  DO(kWrite, write(fd, text, 12));
  DO(kWrite, write(fd, text, 0));
  DO(kPwrite, pwrite(fd, text, 12, 100));
  DO(kPwrite, pwrite64(fd, text, 12, 200));
  DO(kWritev, writev(fd, pieces, 2));
  DO(kPwritev, pwritev(fd, pieces, 2, 300));
  DO(kPwritev, pwritev64(fd, pieces, 2, 400));
  DO(kPwritev, pwritev2(fd, pieces, 2, 500, 0));
  DO(kPwritev, pwritev2(fd, pieces, 2, -1, 0));
  DO(kPwritev, pwritev64v2(fd, pieces, 2, 600, 0));
  DO(kTruncate, ftruncate(fd, 5000));
  DO(kTruncate, ftruncate64(fd, 4000));
  DO(kFallocate, fallocate(fd, 0, 0, 6000));
  DO(kFallocate, fallocate64(fd, FALLOC_FL_KEEP_SIZE, 0, 9000));
  DO(kFallocate, posix_fallocate(fd, 0, 7000) == 0 ? 0 : -1);
  DO(kFallocate, posix_fallocate64(fd, 0, 8000) == 0 ? 0 : -1);
  DO(kRange, sync_file_range(fd, 0, 100, SYNC_FILE_RANGE_WRITE));
  DO(kFsync, fsync(fd));
  DO(kFdatasync, fdatasync(fd));
  DO(kSync, syncfs(fd));
  DO(kWrite, syscall(SYS_write, fd, text, size_t{12}));
  DO(kPwrite, syscall(SYS_pwrite64, fd, text, size_t{12}, off_t{700}));
  DO(kWritev, syscall(SYS_writev, fd, pieces, 2));
  DO(kPwritev, syscall(SYS_pwritev, fd, pieces, 2, off_t{800}, off_t{0}));
  DO(kTruncate, syscall(SYS_ftruncate, fd, off_t{900}));
  DO(kFsync, syscall(SYS_fsync, fd));
  DO(kFdatasync, syscall(SYS_fdatasync, fd));
  const int copy = dup(fd);
  DO(kWrite, write(copy, text, 12));
  DO(kFsync, fsync(copy));
  dup2(copy, 77);
  close(copy);
  DO(kWrite, write(77, text, 12));
  close(77);
}

// Opens by each name; in the folder, which is the working one.
void Opens(int folder, const std::string& outside) {
  close(DO(kOpen, open("a", O_WRONLY | O_CREAT, 0644)));
  close(DO(kOpen, open64("a", O_RDWR)));
  close(DO(kOpen, open("a", O_RDONLY | O_TRUNC)));
  close(DO(kOpen, openat(folder, "b", O_WRONLY | O_CREAT | O_EXCL, 0644)));
  close(DO(kOpen, openat64(folder, "b", O_WRONLY | O_APPEND)));
  close(DO(kOpen, creat("c", 0644)));
  close(DO(kOpen, creat64("c", 0644)));
  close(DO(kOpen, syscall(SYS_openat, folder, "c", O_WRONLY)));
  char one[] = "name-XXXXXX", two[] = "name-XXXXXX.tmp", three[] = "folder-XXXXXX";
  close(DO(kOpen, mkstemp(one)));
  close(DO(kOpen, mkostemps(two, 4, O_CLOEXEC)));
  DO(kMkdir, mkdtemp(three) == nullptr ? -1 : 0);
  DO(kUnlink, unlink(one));
  DO(kUnlink, remove(two));
  DO(kRmdir, remove(three));
  // Not for writing, outside, no regular file: not counted.
  close(open("a", O_RDONLY));
  Outside(close(creat((outside + "/x").c_str(), 0644)));
  Outside(close(open("/dev/null", O_WRONLY)));
}

void Names(int folder, const std::string& outside) {
  DO(kMkdir, mkdir("d", 0755));
  DO(kMkdir, mkdirat(folder, "e", 0755));
  DO(kRename, rename("a", "d/a"));
  DO(kRename, renameat(folder, "d/a", folder, "a"));
  DO(kRename, renameat2(folder, "a", folder, "f", 0));
  DO(kRename, syscall(SYS_renameat2, folder, "f", folder, "a", 1u));
  DO(kLink, link("a", "a2"));
  DO(kLink, linkat(folder, "a", AT_FDCWD, "a3", 0));
  DO(kSymlink, symlink("nowhere", "s"));
  DO(kSymlink, symlinkat("made-through-a-link", folder, "t"));
  close(DO(kOpen, open("t", O_WRONLY | O_CREAT, 0644)));
  DO(kUnlink, unlink("made-through-a-link"));
  DO(kUnlink, unlink("a2"));
  DO(kUnlink, unlinkat(folder, "a3", 0));
  DO(kUnlink, syscall(SYS_unlinkat, folder, "s", 0));
  DO(kRmdir, rmdir("d"));
  DO(kRmdir, unlinkat(folder, "e", AT_REMOVEDIR));
  Outside(symlink("x", (outside + "/link").c_str()));
  Outside(rename((outside + "/x").c_str(), (outside + "/y").c_str()));
  Outside(unlink((outside + "/y").c_str()));
  Outside(unlink((outside + "/link").c_str()));
}

// A file that has no name at first.
void Unnamed(int folder) {
  const int fd = DO(kOpen, open(".", O_TMPFILE | O_WRONLY, 0644));
  DO(kWrite, write(fd, "unnamed", 7));
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  DO(kLink, linkat(AT_FDCWD, path.c_str(), folder, "named", AT_SYMLINK_FOLLOW));
  close(fd);
}

// Several at once, each on a file of its own.
void* Thread(void* argument) {
  const std::string name = "thread-" + std::to_string(reinterpret_cast<intptr_t>(argument));
  const int fd = DO(kOpen, open(name.c_str(), O_WRONLY | O_CREAT, 0644));
  for (int i = 0; i < 50; ++i) DO(kWrite, write(fd, name.data(), name.size()));
  DO(kFsync, fsync(fd));
  close(fd);
  DO(kUnlink, unlink(name.c_str()));
  return nullptr;
}

void Threads() {
  pthread_t threads[4];
  for (intptr_t i = 0; i < 4; ++i) pthread_create(&threads[i], nullptr, Thread, reinterpret_cast<void*>(i));
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  const std::string outside = words[2];
  const int folder = open(words[1], O_RDONLY | O_DIRECTORY);
  if (folder < 0 || chdir(words[1]) != 0) return 1;
  Opens(folder, outside);
  const int fd = DO(kOpen, open("data", O_RDWR | O_CREAT, 0644));
  Data(fd);
  close(fd);
  Names(folder, outside);
  Unnamed(folder);
  DO(kFsync, fsync(folder));
  Threads();
  const int other = creat((outside + "/z").c_str(), 0644);
  Outside(write(other, "z", 1));
  Outside(fsync(other));
  // Numbers are a process's own, so a child's calls are not among these.
  if (const pid_t child = fork(); child == 0) {
    _exit(mkdir("by-a-child", 0755));
  } else {
    waitpid(child, nullptr, 0);
  }
  for (int kind = 0; kind < kKinds; ++kind) printf("%s %d\n", kNames[kind], counts[kind].load());
  return 0;
}
