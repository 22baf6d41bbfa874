#include "runtime/collective/shm/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/net/socket.h"
#include "runtime/collective/rendezvous/interruptible_wait.h"

namespace ft {
namespace {

constexpr absl::string_view kError = "error ";

// Removes the name when it goes out of scope. The memory lives on as long as somebody maps it.
class SegmentName {
 public:
  explicit SegmentName(std::string name) : name_(std::move(name)) {}
  SegmentName(const SegmentName&) = delete;
  ~SegmentName() { shm_unlink(name_.c_str()); }  // gone already: another rank did it
  const char* c_str() const { return name_.c_str(); }

 private:
  const std::string name_;
};

std::string RandomName() {
  std::random_device device;
  return absl::StrCat("/ftexec-", getpid(), "-", absl::Hex(device(), absl::kZeroPad8),
                      absl::Hex(device(), absl::kZeroPad8));
}

absl::StatusOr<std::byte*> Map(const Fd& fd, size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return ErrnoStatus(absl::StrCat("mapping ", bytes, " bytes of shared memory"));
  return static_cast<std::byte*>(data);
}

// Reserves the pages now: writing to a page that /dev/shm cannot hold would be a SIGBUS in mid-step.
absl::StatusOr<std::byte*> Reserve(const SegmentName& name, size_t bytes) {
  Fd fd(shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) return ErrnoStatus(absl::StrCat("creating shared memory ", name.c_str()));
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes));
  if (error == ENOSPC) {
    return absl::ResourceExhaustedError(
        absl::StrCat("/dev/shm has no room for ", bytes,
                     " bytes of staging: make it larger (docker run --shm-size=1g, "
                     "mount -o remount,size=1g /dev/shm), or use another collective backend"));
  }
  if (error == EFBIG) {
    return absl::ResourceExhaustedError(
        absl::StrCat("shared memory of ", bytes,
                     " bytes is larger than a file may be (ulimit -f); allow more, or use another collective "
                     "backend (--comm-backend=gloo)"));
  }
  if (error != 0)
    return absl::InternalError(absl::StrCat("reserving shared memory failed: ", std::strerror(error)));
  return Map(fd, bytes);
}

absl::StatusOr<std::byte*> Attach(const SegmentName& name, size_t bytes) {
  Fd fd(shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus(absl::StrCat("opening rank 0's shared memory /dev/shm", name.c_str()));
  struct stat info{};
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus("fstat of shared memory");
  if (static_cast<size_t>(info.st_size) != bytes) {
    return absl::InternalError(
        absl::StrCat("rank 0's shared memory has ", info.st_size, " bytes, expected ", bytes));
  }
  return Map(fd, bytes);
}

std::string MappedKey(const SharedSegment::Options& options, int rank) {
  return absl::StrCat(options.key, "/mapped/", rank);
}

absl::Status WaitForOthers(Store* store, const SharedSegment::Options& options) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < options.size; ++rank) keys.push_back(MappedKey(options, rank));
  const absl::Status waited = InterruptibleWait(store, keys, options.deadline, options.interrupted);
  if (!absl::IsDeadlineExceeded(waited)) return waited;
  std::vector<int> missing;
  for (int rank = 0; rank < options.size; ++rank) {
    FT_ASSIGN_OR_RETURN(const bool there, store->Check({keys[static_cast<size_t>(rank)]}));
    if (!there) missing.push_back(rank);
  }
  return absl::UnavailableError(
      absl::StrCat("rank ", absl::StrJoin(missing, ", "), " did not map the shared memory ", options.key));
}

}  // namespace

absl::StatusOr<SharedSegment> SharedSegment::Create(Store* store, const Options& options) {
  const std::string name_key = absl::StrCat(options.key, "/name");
  std::string text;
  std::byte* data = nullptr;
  if (options.rank == 0) {
    text = RandomName();
  } else {
    FT_RETURN_IF_ERROR(InterruptibleWait(store, {name_key}, options.deadline, options.interrupted));
    FT_ASSIGN_OR_RETURN(text, store->Get(name_key, options.deadline));
    if (absl::StartsWith(text, kError)) {
      return absl::ResourceExhaustedError(absl::StrCat("rank 0: ", text.substr(kError.size())));
    }
  }
  const SegmentName name(text);
  if (options.rank == 0) {
    auto reserved = Reserve(name, options.bytes);
    if (!reserved.ok()) {
      FT_RETURN_IF_ERROR(store->Set(name_key, absl::StrCat(kError, reserved.status().message())));
      return reserved.status();
    }
    data = *reserved;
  } else {
    FT_ASSIGN_OR_RETURN(data, Attach(name, options.bytes));
  }
  SharedSegment segment(data, options.bytes);
  if (options.rank == 0) FT_RETURN_IF_ERROR(store->Set(name_key, text));
  FT_RETURN_IF_ERROR(store->Set(MappedKey(options, options.rank), ""));
  FT_RETURN_IF_ERROR(WaitForOthers(store, options));
  return segment;
}

SharedSegment::~SharedSegment() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace ft
