#include "test/doubles/nccl/host_nccl.h"

#include <cstring>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/local/local_communicator.h"
#include "runtime/collective/rendezvous/tcp_store_client.h"
#include "runtime/collective/shm/shm_communicator.h"
#include "test/doubles/nccl/host_nccl_comm.h"

namespace ft::testing {

using nccl::CommHandle;
using nccl::Result;

namespace {

using Comm = HostNccl::Comm;

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr char kConnected[] = "connected", kFinalized[] = "finalized";
constexpr int kQuestions = 3;  // about a group until it is enqueued

Comm* CommOf(CommHandle handle) { return reinterpret_cast<Comm*>(handle); }

absl::Status Join(Comm& comm, int rank, int size) {
  comm.rank = rank;
  comm.size = size;
  if (size == 1) {
    comm.inner = CreateLocalCommunicator();
    comm.ready = comm.inner.get();
    return absl::OkStatus();
  }
  ShmOptions options;
  options.key = comm.key;
  options.rank = rank;
  options.size = size;
  options.timeout = kPatience;
  options.connect_timeout = kPatience;
  options.interrupted = [&comm] {
    const bool aborted = comm.failed || (comm.parent != nullptr && comm.parent->failed);
    return aborted ? absl::CancelledError("aborted") : absl::OkStatus();
  };
  for (int r = 0; r < size; ++r) options.members.push_back(absl::StrCat("rank ", r, " of emulated NCCL"));
  FT_ASSIGN_OR_RETURN(comm.inner, CreateShmCommunicator(comm.store.get(), options));
  comm.ready = comm.inner.get();
  return absl::OkStatus();
}

absl::Status Connect(Comm& comm, const nccl::UniqueId& id, int rank, int size) {
  uint32_t port = 0;
  if (!absl::SimpleAtoi(id.internal, &port))
    return absl::InvalidArgumentError("no unique id of emulated NCCL");
  FT_ASSIGN_OR_RETURN(
      comm.store, TcpStoreClient::Connect("127.0.0.1", static_cast<uint16_t>(port), absl::Now() + kPatience));
  comm.key = "world";
  return Join(comm, rank, size);
}

// `child` is taken over by the caller when there is a color.
absl::Status SplitOff(Comm& parent, int color, int key, Comm& child) {
  const SplitWish own{color, key};
  std::vector<SplitWish> wishes(static_cast<size_t>(parent.inner->size()));
  FT_RETURN_IF_ERROR(parent.inner->AllGather(&own, wishes.data(), sizeof(own), {"split", 0}));
  const int number = parent.splits++;
  if (color == nccl::kNoColor) return absl::OkStatus();
  const auto [rank, size] = PlaceInSplit(wishes, parent.inner->rank());
  child.store = parent.store;
  child.parent = &parent;
  child.key = absl::StrCat(parent.key, "/", number, "/", color);
  return Join(child, rank, size);
}

}  // namespace

HostNccl::HostNccl(int version, bool declines) : version_(version), declines_(declines) {}
HostNccl::~HostNccl() = default;

int HostNccl::communicators() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int>(comms_.size());
}

std::vector<nccl::CtaPolicy> HostNccl::policies() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return policies_;
}

Result HostNccl::GetVersion(int* version) {
  *version = version_;
  return nccl::kSuccess;
}
const char* HostNccl::GetErrorString(Result result) {
  return result == nccl::kRemoteError ? "remote process exited or there was a network error" : "some error";
}
const char* HostNccl::GetLastError(CommHandle) { return "emulated, with\ntwo lines"; }

Result HostNccl::GetUniqueId(nccl::UniqueId* id) {
  auto server = TcpStoreServer::Start(0);
  if (!server.ok()) return nccl::kSystemError;
  server_ = *std::move(server);
  std::memset(id->internal, 0, sizeof(id->internal));
  const std::string port = absl::StrCat(server_->port());
  std::memcpy(id->internal, port.data(), port.size());
  id->internal[127] = '\xFF';  // it has any bytes
  return nccl::kSuccess;
}

HostNccl::Comm* HostNccl::NewComm() {
  auto comm = std::make_shared<Comm>();
  const std::lock_guard<std::mutex> lock(mutex_);
  comms_.insert(comm);
  return comm.get();
}

void HostNccl::Forget(Comm* comm) {
  if (comm->busy.valid()) comm->busy.wait();
  comm->AwaitNoneHeld();
  ForgetWindows(comm->handle());
  const std::lock_guard<std::mutex> lock(mutex_);
  comms_.erase(comm->shared_from_this());
}

Result HostNccl::CommInitRankConfig(CommHandle* comm, int ranks, const nccl::UniqueId& id, int rank,
                                    nccl::Config* config) {
  if (config->blocking != 0 || PolicyOf(*config, version_) != nccl::CtaPolicy::kLibrarys || rank >= ranks)
    return nccl::kInvalidArgument;
  world_rank_ = rank;
  Comm* made = NewComm();
  made->busy =
      std::async(std::launch::async, [made, id, rank, ranks] { return Connect(*made, id, rank, ranks); });
  *comm = made->handle();
  return nccl::kInProgress;
}

Result HostNccl::CommSplit(CommHandle handle, int color, int key, CommHandle* made, nccl::Config* config) {
  const nccl::CtaPolicy policy = PolicyOf(*config, version_);
  if (config->blocking != 0 || config->split_share != 0 || !Knows(version_, policy))
    return nccl::kInvalidArgument;
  Comm& parent = *CommOf(handle);
  Comm* child = color == nccl::kNoColor ? nullptr : NewComm();
  if (child != nullptr) child->copy_engines = policy == nccl::CtaPolicy::kZero;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    policies_.push_back(policy);
  }
  *made = child == nullptr ? nullptr : child->handle();
  parent.busy = std::async(std::launch::async, [&parent, color, key, child] {
    Comm nobody;
    const absl::Status split = SplitOff(parent, color, key, child == nullptr ? nobody : *child);
    if (child != nullptr) child->parent = nullptr;
    return split;
  });
  return nccl::kSuccess;  // as NCCL says although it goes on
}

Result HostNccl::CommFinalize(CommHandle handle) {
  Comm& comm = *CommOf(handle);
  comm.finalizing = true;
  if (comm.size > 1) comm.Come(kFinalized);
  return nccl::kInProgress;
}

Result HostNccl::CommDestroy(CommHandle handle) {
  Forget(CommOf(handle));
  return nccl::kSuccess;
}

Result HostNccl::CommAbort(CommHandle handle) {
  Comm* comm = CommOf(handle);
  ++aborts_;
  comm->failed = true;
  comm->AbortInner();
  Forget(comm);
  return nccl::kSuccess;
}

Result HostNccl::CommGetAsyncError(CommHandle handle, Result* error) {
  Comm& comm = *CommOf(handle);
  if (*error = broken_; *error != nccl::kSuccess) return nccl::kSuccess;
  *error = nccl::kInProgress;
  if (comm.busy.valid()) {
    if (comm.busy.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return nccl::kSuccess;
    if (!comm.busy.get().ok()) comm.failed = true;
  }
  if (comm.failed) {
    *error = nccl::kRemoteError;
    return nccl::kSuccess;
  }
  if (comm.size > 1 && comm.connecting) {
    if (!comm.HaveAllCome(kConnected)) return nccl::kSuccess;
    comm.connecting = false;
  }
  if (comm.finalizing && (comm.holds() || (comm.size > 1 && !comm.HaveAllCome(kFinalized))))
    return nccl::kSuccess;
  if (comm.questions-- > 0) return nccl::kSuccess;
  *error = nccl::kSuccess;
  comm.taken = false;
  return nccl::kSuccess;
}

Result HostNccl::CommRegister(CommHandle, void* data, size_t, void** registration) {
  ++registrations_;
  *registration = data;
  return nccl::kSuccess;
}
Result HostNccl::CommDeregister(CommHandle, void*) {
  --registrations_;
  return nccl::kSuccess;
}

Result HostNccl::CommWindowRegister(CommHandle handle, void* data, size_t bytes, nccl::WindowHandle* window,
                                    int flags) {
  if (data == nullptr || bytes == 0 || flags != nccl::kSymmetric) return nccl::kInvalidArgument;
  *window = nullptr;
  if (declines_ || !HasWindowsAt(version_)) return nccl::kSuccess;
  Comm& comm = *CommOf(handle);
  if (comm.holds()) return nccl::kInvalidUsage;  // both would use `inner`
  comm.busy = std::async(std::launch::async, [this, &comm, data, bytes, window]() -> absl::Status {
    FT_ASSIGN_OR_RETURN(const bool same, AllSame(*comm.inner, bytes));
    if (!same) return absl::InternalError("ranks disagree on a window");
    *window = AddWindow(comm.handle(), data, bytes);
    return absl::OkStatus();
  });
  return nccl::kInProgress;
}
Result HostNccl::CommWindowDeregister(CommHandle comm, nccl::WindowHandle window) {
  return RemoveWindow(comm, window);
}

void HostNccl::Interrupt(CommHandle handle) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const std::shared_ptr<Comm>& comm : comms_) {
    if (comm->handle() != handle) continue;
    comm->interrupted = true;
    if (comm->calling) comm->AbortInner();
  }
}

int HostNccl::RanksOf(CommHandle comm) const { return CommOf(comm)->size; }

Result HostNccl::Admit(CommHandle comm) {
  return CommOf(comm)->taken ? nccl::kInvalidArgument : nccl::kSuccess;
}

Result HostNccl::Enqueue(CommHandle handle, CUstream_st& stream, std::vector<NcclCall> calls) {
  Comm& comm = *CommOf(handle);
  comm.taken = true;
  comm.questions = kQuestions;
  if (comm.size > 1 && !std::exchange(comm.connected, true)) {
    comm.connecting = true;
    comm.Come(kConnected);
  }
  const auto held = std::make_shared<const Held>(comm.shared_from_this());
  comm.calling = true;  // before `interrupted` is read, which Interrupt writes before it reads this
  if (comm.interrupted) comm.AbortInner();
  const int error = stream.Submit("a group of NCCL calls", [held, calls = std::move(calls)] {
    RunGroup(held->comm(), calls);
    return 0;
  });
  comm.calling = false;
  return error == 0 ? nccl::kInProgress : nccl::kUnhandledCudaError;
}

}  // namespace ft::testing
