#include "tools/ftexec/thread_room.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/regular_file.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/thread.h"
#include "runtime/plan/stream_use.h"
#include "tools/ftexec/address_space.h"

namespace ft {
namespace {

// Streams of every plan, the watch over peers, the store, Gloo, the report of a failure.
constexpr int kOtherThreads = 9;

// Held by one rank of the host at a time. What others may hold as well is not waited for without end: after
// two seconds a rank goes on without.
OpenFile LockHost() {
  OpenFile lock(open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int tries = 0; tries < 200 && flock(lock.fd(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
       ++tries)
    absl::SleepFor(absl::Milliseconds(10));
  return lock;
}

}  // namespace

// libgomp ends the process without a word of ours where it gets no threads: find out before the ranks meet.
// Each stream that runs kernels has a team of its own. A limit is on all ranks of a host together, so each
// looks for room for all of them, one after the other: at the same time they could refuse what there is. None
// starts a team before all have looked, as the meeting lies between.
absl::Status ProbeTeam(const Job& job, const RankDevice& device) {
  const bool host_updates = UsesStream(job.plan(), proto::HOST_COMPUTE);
  const int teams = (device.is_cpu() ? 1 : 0) + (host_updates ? 1 : 0);
  if (teams == 0) return absl::OkStatus();
  // A host that updates has one more stream, and so have sums over replicas.
  const int more_streams = (host_updates ? 1 : 0) + (UsesStream(job.plan(), proto::REPLICA) ? 1 : 0);
  const int own = teams * job.threads + kOtherThreads + more_streams;
  const OpenFile lock = LockHost();
  FT_RETURN_IF_ERROR(ProbeProcesses("to compute", job.environment.local_world_size * own));
  FT_RETURN_IF_ERROR(ProbeThreads("to compute", own));
  // On a GPU's host nothing multiplies.
  return device.is_cpu() ? CheckAddressSpace(job.threads) : absl::OkStatus();
}

}  // namespace ft
