// One communicator of NCCL's, non-blocking: no call into it takes long, so that another thread can end what
// is going on at any time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "runtime/base/first_failure.h"
#include "runtime/collective/nccl/nccl_api.h"

namespace ft::nccl {

// How long the making of a communicator may take, and what else ends it (may be empty).
struct Patience {
  absl::Time deadline = absl::InfiniteFuture();
  std::function<absl::Status()> interrupted;
};

class NcclHandle {
 public:
  // A communicator over `ranks`; each of them has to call it. Errors: DeadlineExceeded, that of
  // `interrupted`, those of NCCL.
  static absl::StatusOr<std::unique_ptr<NcclHandle>> Init(std::shared_ptr<NcclApi> api, int ranks,
                                                          const UniqueId& id, int rank,
                                                          const Patience& patience);
  // Aborts, unless Close was called. Waits for the end of an abort, but not for long.
  ~NcclHandle();

  // A communicator over the ranks of this one that give the same color, ordered by key; null for kNoColor.
  // Every rank of this one has to call it. `policy` is one that the library knows. Errors: as above.
  absl::StatusOr<std::unique_ptr<NcclHandle>> Split(int color, int key, const Patience& patience,
                                                    CtaPolicy policy = CtaPolicy::kLibrarys);

  // Makes `calls` as one group, and returns when NCCL has put it on the stream: at once as a rule, but the
  // first of a kind makes connections, for which all ranks have to come. Waits without a deadline: Fail ends
  // it. Errors: that of Fail, those of NCCL. After an error nothing works any more.
  absl::Status Group(absl::FunctionRef<Result(NcclApi&, CommHandle)> calls);

  // What NCCL found out by itself, about a connection for instance; OK while all is well. Also while another
  // thread is in a call, should that wait after all (NCCL_COMM_BLOCKING=1): it returns what is wrong itself.
  absl::Status AsyncError();

  // Tells NCCL of memory that is going to be sent and received a lot. It may decline.
  void Register(void* data, size_t bytes);
  // Makes a window of it, which every rank has to do at once; where NCCL declines, registers it. Errors: as
  // above.
  absl::Status RegisterWindow(void* data, size_t bytes, const Patience& patience);
  void Deregister();  // all of it

  // From now on everything fails with `reason`, unless it did before; what waits is woken. Any thread, at
  // once.
  void Fail(absl::Status reason);
  absl::Status status() const { return failure_.status(); }

  // Ends what is on the device, and gives the communicator up; once. After Fail. Returns at once, while a
  // thread of its own waits for NCCL: that is through when the streams have passed all that the communicator
  // put there, for which others may have to be aborted too, and when no recording is left that has some of
  // it.
  void Abort();

  // The orderly end: waits until the other ranks have come to it too, or `deadline`; aborts then.
  void Close(absl::Time deadline);

 private:
  NcclHandle(std::shared_ptr<NcclApi> api) : api_(std::move(api)) {}

  // While `comm_` is busy with itself. Errors: as above.
  absl::Status AwaitReady(std::unique_lock<std::mutex>& lock, const Patience& patience, const char* what);
  // Of a call that failed, with the reason that the library gives; becomes this communicator's state.
  absl::Status Failed(const char* what, Result result);
  // Whether nothing of an abort is going on any more; waits for it, but not for long.
  bool AwaitAborted();

  const std::shared_ptr<NcclApi> api_;
  FirstFailure failure_;
  std::condition_variable wake_;
  std::mutex mutex_;  // for calls with comm_, none of which waits
  CommHandle comm_ = nullptr;
  std::atomic<CommHandle> made_ = nullptr;       // comm_, once it is made, for Fail, which does not wait
  std::shared_ptr<absl::Notification> aborted_;  // null: there was nothing to abort
  std::vector<void*> registrations_;
  std::vector<WindowHandle> windows_;
  bool making_window_ = false;  // then who does waits for it, and says what is wrong with it
  // Where a thread of NCCL's writes windows, until an abort is through.
  std::shared_ptr<std::deque<WindowHandle>> written_ = std::make_shared<std::deque<WindowHandle>>();
};

// The settings of our communicators.
Config NonBlocking(CtaPolicy policy = CtaPolicy::kLibrarys);

}  // namespace ft::nccl
