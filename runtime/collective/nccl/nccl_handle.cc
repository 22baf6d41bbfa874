#include "runtime/collective/nccl/nccl_handle.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"

namespace ft::nccl {
namespace {

// NCCL has no call that waits for it; it is asked until it is through. A collective is handed over by a
// thread of NCCL's within some ten to some hundred microseconds; connections take longer.
constexpr absl::Duration kYielding = absl::Milliseconds(2);
constexpr auto kPause = std::chrono::microseconds(500);
constexpr absl::Duration kBetweenInterruptions = absl::Milliseconds(100);
// Longer than an abort takes when nothing is in its way.
constexpr absl::Duration kAbortPatience = absl::Seconds(2);

bool WentWell(Result result) { return result == kSuccess || result == kInProgress; }

}  // namespace

Config NonBlocking(CtaPolicy policy) {
  Config config;
  config.cta_policy = policy;
  if (policy == CtaPolicy::kLibrarys) {
    config.size = kConfigBytesBeforePolicies;
    config.version = kVersionBeforePolicies;
  }
  config.blocking = 0;
  config.split_share = 0;  // an aborted communicator must not take others with it
  return config;
}

absl::StatusOr<std::unique_ptr<NcclHandle>> NcclHandle::Init(std::shared_ptr<NcclApi> api, int ranks,
                                                             const UniqueId& id, int rank,
                                                             const Patience& patience) {
  std::unique_ptr<NcclHandle> made(new NcclHandle(std::move(api)));
  std::unique_lock<std::mutex> lock(made->mutex_);
  Config config = NonBlocking();
  const Result result = made->api_->CommInitRankConfig(&made->comm_, ranks, id, rank, &config);
  if (!WentWell(result)) return made->Failed("ncclCommInitRankConfig", result);
  FT_RETURN_IF_ERROR(made->AwaitReady(lock, patience, "ncclCommInitRankConfig"));
  made->made_ = made->comm_;
  lock.unlock();
  return made;
}

NcclHandle::~NcclHandle() {
  if (comm_ != nullptr) Fail(absl::CancelledError("this communicator is gone"));
  Abort();
  // What is not through by now waits for something that this process has left hanging, and ends with it.
  AwaitAborted();
}

absl::StatusOr<std::unique_ptr<NcclHandle>> NcclHandle::Split(int color, int key, const Patience& patience,
                                                              CtaPolicy policy) {
  std::unique_ptr<NcclHandle> made(new NcclHandle(api_));
  std::unique_lock<std::mutex> lock(mutex_);
  FT_RETURN_IF_ERROR(status());
  Config config = NonBlocking(policy);
  const Result result = api_->CommSplit(comm_, color, key, &made->comm_, &config);
  if (!WentWell(result)) return Failed("ncclCommSplit", result);
  // made->comm_ is written by the time that this communicator is through, which it has to be before `made`
  // may go.
  absl::Status split = AwaitReady(lock, patience, "ncclCommSplit");
  lock.unlock();
  if (!split.ok()) {
    Fail(split);
    Abort();
    if (!AwaitAborted()) static_cast<void>(made.release());  // NCCL may still write into it
    return split;
  }
  if (made->comm_ == nullptr) return nullptr;
  std::unique_lock<std::mutex> child_lock(made->mutex_);
  FT_RETURN_IF_ERROR(made->AwaitReady(child_lock, patience, "ncclCommSplit"));
  made->made_ = made->comm_;
  child_lock.unlock();
  return made;
}

absl::Status NcclHandle::Group(absl::FunctionRef<Result(NcclApi&, CommHandle)> calls) {
  std::unique_lock<std::mutex> lock(mutex_);
  FT_RETURN_IF_ERROR(status());
  Result result = api_->GroupStart();
  if (WentWell(result)) {
    result = calls(*api_, comm_);
    const Result end = api_->GroupEnd();  // an error of a call does not end the group
    if (WentWell(result)) result = end;
  }
  if (!WentWell(result)) return Failed("a group of NCCL calls", result);
  // Whatever it returned: some calls say kSuccess while a thread of NCCL's is at it.
  return AwaitReady(lock, {}, "a group of NCCL calls");
}

absl::Status NcclHandle::AsyncError() {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  FT_RETURN_IF_ERROR(status());
  if (!lock.owns_lock() || making_window_) return absl::OkStatus();
  Result state = kSuccess;
  const Result asked = api_->CommGetAsyncError(comm_, &state);
  if (asked != kSuccess) return Failed("ncclCommGetAsyncError", asked);
  return WentWell(state) ? absl::OkStatus() : Failed("a collective", state);
}

void NcclHandle::Register(void* data, size_t bytes) {
  const std::unique_lock<std::mutex> lock(mutex_);
  if (comm_ == nullptr || bytes == 0) return;
  void* registration = nullptr;
  if (api_->CommRegister(comm_, data, bytes, &registration) == kSuccess && registration != nullptr) {
    registrations_.push_back(registration);
  }
}

absl::Status NcclHandle::RegisterWindow(void* data, size_t bytes, const Patience& patience) {
  std::unique_lock<std::mutex> lock(mutex_);
  FT_RETURN_IF_ERROR(status());
  const char* const what = "ncclCommWindowRegister (NCCL_WIN_ENABLE=0 does without)";
  const WindowHandle& window = written_->emplace_back(nullptr);
  const Result result = api_->CommWindowRegister(comm_, data, bytes, &written_->back(), kSymmetric);
  if (!WentWell(result)) return Failed(what, result);
  making_window_ = true;
  const absl::Status made = AwaitReady(lock, patience, what);
  making_window_ = false;
  if (!made.ok()) {
    const absl::Status reason =
        failure_.Set(absl::IsDeadlineExceeded(made) ? absl::UnavailableError(made.message()) : made);
    lock.unlock();
    Abort();
    AwaitAborted();  // the memory may go
    return reason;
  }
  if (window != nullptr) {
    windows_.push_back(window);
    return absl::OkStatus();
  }
  lock.unlock();
  Register(data, bytes);
  return absl::OkStatus();
}

void NcclHandle::Deregister() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!written_->empty() && !status().ok()) {
    // NCCL may be at a window still. The abort gives up all of them, and is waited for: the memory is about
    // to go.
    lock.unlock();
    Abort();
    AwaitAborted();
    return;
  }
  if (comm_ == nullptr) return;
  for (WindowHandle window : windows_) api_->CommWindowDeregister(comm_, window);
  windows_.clear();
  for (void* registration : registrations_) api_->CommDeregister(comm_, registration);
  registrations_.clear();
}

void NcclHandle::Fail(absl::Status reason) {
  failure_.Set(std::move(reason)).IgnoreError();
  wake_.notify_all();
  if (CommHandle comm = made_; comm != nullptr) api_->Interrupt(comm);
}

void NcclHandle::Abort() {
  const std::unique_lock<std::mutex> lock(mutex_);
  if (comm_ == nullptr) return;
  aborted_ = std::make_shared<absl::Notification>();
  made_ = nullptr;
  std::thread([api = api_, comm = std::exchange(comm_, nullptr), written = written_, aborted = aborted_] {
    api->CommAbort(comm);
    aborted->Notify();
  }).detach();
}

bool NcclHandle::AwaitAborted() {
  std::unique_lock<std::mutex> lock(mutex_);
  const std::shared_ptr<absl::Notification> aborted = aborted_;
  lock.unlock();
  return aborted == nullptr || aborted->WaitForNotificationWithTimeout(kAbortPatience);
}

void NcclHandle::Close(absl::Time deadline) {
  Deregister();
  std::unique_lock<std::mutex> lock(mutex_);
  if (comm_ == nullptr) return;
  if (status().ok()) {
    const Result result = api_->CommFinalize(comm_);
    const bool finalized = result == kSuccess || (result == kInProgress &&
                                                  AwaitReady(lock, {deadline, {}}, "ncclCommFinalize").ok());
    if (finalized) {
      made_ = nullptr;
      api_->CommDestroy(std::exchange(comm_, nullptr));
    }
  }
  lock.unlock();
  failure_.Set(absl::CancelledError("this communicator is closed")).IgnoreError();
  Abort();
}

absl::Status NcclHandle::AwaitReady(std::unique_lock<std::mutex>& lock, const Patience& patience,
                                    const char* what) {
  const absl::Time begin = absl::Now();
  absl::Time next_question = begin;
  for (;;) {
    FT_RETURN_IF_ERROR(status());
    Result state = kSuccess;
    const Result asked = api_->CommGetAsyncError(comm_, &state);
    if (asked != kSuccess) return Failed("ncclCommGetAsyncError", asked);
    if (state != kInProgress) return state == kSuccess ? absl::OkStatus() : Failed(what, state);
    const absl::Time now = absl::Now();
    if (now >= patience.deadline) return absl::DeadlineExceededError(absl::StrCat(what, " takes too long"));
    if (patience.interrupted && now >= next_question) {
      FT_RETURN_IF_ERROR(patience.interrupted());
      next_question = now + kBetweenInterruptions;
    }
    if (now - begin < kYielding) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    } else {
      wake_.wait_for(lock, kPause);
    }
  }
}

absl::Status NcclHandle::Failed(const char* what, Result result) {
  const char* reason = api_->GetLastError(comm_);
  std::string text = absl::StrCat(what, " failed: ", api_->GetErrorString(result));
  if (reason != nullptr && reason[0] != '\0') absl::StrAppend(&text, " (", reason, ")");
  std::replace(text.begin(), text.end(), '\n', ' ');
  // What a lost peer or connection looks like; the monitor of peers may know more.
  const bool peer = result == kRemoteError || result == kSystemError;
  return failure_.Set(peer ? absl::UnavailableError(text) : absl::InternalError(text));
}

}  // namespace ft::nccl
