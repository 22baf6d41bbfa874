#include "test/doubles/nccl/host_nccl.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <future>
#include <numeric>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/local/local_communicator.h"
#include "runtime/collective/rendezvous/tcp_store_client.h"
#include "runtime/collective/shm/shm_communicator.h"

namespace ft::testing {

using nccl::CommHandle;
using nccl::Result;

struct HostNccl::Comm : std::enable_shared_from_this<Comm> {  // a stream may outlive it
  std::shared_ptr<Store> store;
  std::string key;
  std::unique_ptr<Communicator> inner;
  std::atomic<Communicator*> ready = nullptr;  // `inner`, for other threads
  int splits = 0;
  std::atomic<bool> failed = false;
  std::future<absl::Status> busy;  // making this one, or splitting it

  CommHandle handle() { return reinterpret_cast<CommHandle>(this); }
};

namespace {

using Comm = HostNccl::Comm;
using Kind = NcclCall::Kind;

constexpr absl::Duration kPatience = absl::Seconds(60);

Comm* CommOf(CommHandle handle) { return reinterpret_cast<Comm*>(handle); }

absl::Status Join(Comm& comm, int rank, int size) {
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
  child.key = absl::StrCat(parent.key, "/", number, "/", color);
  return Join(child, rank, size);
}

absl::Status RunCollective(Communicator& inner, const NcclCall& call) {
  const CollectiveLabel label{"emulated NCCL", 0};
  switch (call.kind) {
    case Kind::kAllGather:
      return inner.AllGather(call.src, call.dst, call.bytes(), label);
    case Kind::kReduceScatter:
      return inner.ReduceScatter(call.src, call.dst, call.count, TypeOf(call.type), label);
    case Kind::kAllReduce: {
      const ReducePart part{call.src, call.dst, call.count, TypeOf(call.type)};
      return inner.AllReduce(absl::MakeConstSpan(&part, 1), label);
    }
    case Kind::kBroadcast:
      if (call.src != call.dst) std::memcpy(call.dst, call.src, call.bytes());
      return inner.Broadcast(call.dst, call.bytes(), call.peer, label);
    case Kind::kSend:
    case Kind::kRecv:
      break;
  }
  return absl::InternalError("not a collective");
}

// Each rank in turn shows everyone all that it sends; whoever is meant takes it.
absl::Status RunTransfers(Communicator& inner, const std::vector<const NcclCall*>& calls) {
  const auto size = static_cast<size_t>(inner.size()), me = static_cast<size_t>(inner.rank());
  std::vector<uint64_t> row(size), table(size * size);  // bytes from rank to rank
  for (const NcclCall* call : calls) {
    if (call->kind == Kind::kSend) row[static_cast<size_t>(call->peer)] += call->bytes();
  }
  FT_RETURN_IF_ERROR(inner.AllGather(row.data(), table.data(), size * 8, {"sizes of transfers", 0}));
  for (size_t from = 0; from < size; ++from) {
    const auto begin = table.begin() + static_cast<ptrdiff_t>(from * size);
    std::vector<std::byte> shown(std::accumulate(begin, begin + static_cast<ptrdiff_t>(size), uint64_t{0}));
    std::vector<uint64_t> at(size);
    std::exclusive_scan(begin, begin + static_cast<ptrdiff_t>(size), at.begin(), uint64_t{0});
    for (const NcclCall* call : calls) {
      if (from != me || call->kind != Kind::kSend) continue;
      std::memcpy(shown.data() + at[static_cast<size_t>(call->peer)], call->src, call->bytes());
      at[static_cast<size_t>(call->peer)] += call->bytes();
    }
    FT_RETURN_IF_ERROR(inner.Broadcast(shown.data(), shown.size(), static_cast<int>(from), {"transfers", 0}));
    uint64_t taken = 0;
    for (const NcclCall* call : calls) {
      if (call->kind != Kind::kRecv || static_cast<size_t>(call->peer) != from) continue;
      if (taken + call->bytes() > table[from * size + me]) return absl::InternalError("less was sent");
      std::memcpy(call->dst, shown.data() + at[me] + taken, call->bytes());
      taken += call->bytes();
    }
    if (from != me && taken != table[from * size + me]) return absl::InternalError("more was sent");
  }
  return absl::OkStatus();
}

absl::Status RunGroup(Communicator& inner, const std::vector<NcclCall>& calls) {
  std::vector<const NcclCall*> transfers;
  for (const NcclCall& call : calls) {
    if (call.is_transfer()) {
      transfers.push_back(&call);
    } else {
      FT_RETURN_IF_ERROR(RunCollective(inner, call));
    }
  }
  return transfers.empty() ? absl::OkStatus() : RunTransfers(inner, transfers);
}

}  // namespace

HostNccl::HostNccl(int version) : version_(version) {}
HostNccl::~HostNccl() = default;

Result HostNccl::GetVersion(int* version) {
  *version = version_;
  return nccl::kSuccess;
}
const char* HostNccl::GetErrorString(Result) { return "an error of emulated NCCL"; }
const char* HostNccl::GetLastError(CommHandle) { return ""; }

Result HostNccl::GetUniqueId(nccl::UniqueId* id) {
  auto server = TcpStoreServer::Start(0);
  if (!server.ok()) return nccl::kSystemError;
  server_ = *std::move(server);
  std::memset(id->internal, 0, sizeof(id->internal));
  const std::string port = absl::StrCat(server_->port());
  std::memcpy(id->internal, port.data(), port.size());
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
  const std::lock_guard<std::mutex> lock(mutex_);
  comms_.erase(comm->shared_from_this());
}

Result HostNccl::CommInitRankConfig(CommHandle* comm, int ranks, const nccl::UniqueId& id, int rank,
                                    nccl::Config*) {
  Comm* made = NewComm();
  made->busy =
      std::async(std::launch::async, [made, id, rank, ranks] { return Connect(*made, id, rank, ranks); });
  *comm = made->handle();
  return nccl::kInProgress;
}

Result HostNccl::CommSplit(CommHandle handle, int color, int key, CommHandle* made, nccl::Config*) {
  Comm& parent = *CommOf(handle);
  Comm* child = color == nccl::kNoColor ? nullptr : NewComm();
  *made = child == nullptr ? nullptr : child->handle();
  parent.busy = std::async(std::launch::async, [&parent, color, key, child] {
    Comm nobody;
    return SplitOff(parent, color, key, child == nullptr ? nobody : *child);
  });
  return nccl::kInProgress;
}

Result HostNccl::CommFinalize(CommHandle) { return nccl::kSuccess; }

Result HostNccl::CommDestroy(CommHandle handle) {
  Forget(CommOf(handle));
  return nccl::kSuccess;
}

Result HostNccl::CommAbort(CommHandle handle) {
  Comm* comm = CommOf(handle);
  if (Communicator* inner = comm->ready) inner->Abort(absl::UnavailableError("aborted"));
  Forget(comm);
  return nccl::kSuccess;
}

Result HostNccl::CommGetAsyncError(CommHandle handle, Result* error) {
  Comm& comm = *CommOf(handle);
  *error = nccl::kInProgress;
  if (comm.busy.valid()) {
    if (comm.busy.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return nccl::kSuccess;
    if (!comm.busy.get().ok()) comm.failed = true;
  }
  *error = comm.failed ? nccl::kRemoteError : nccl::kSuccess;
  return nccl::kSuccess;
}

Result HostNccl::CommRegister(CommHandle, void*, size_t, void** registration) {
  *registration = nullptr;
  return nccl::kSuccess;
}
Result HostNccl::CommDeregister(CommHandle, void*) { return nccl::kSuccess; }

void HostNccl::Interrupt() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const std::shared_ptr<Comm>& comm : comms_) {
    if (Communicator* inner = comm->ready) inner->Abort(absl::UnavailableError("interrupted"));
  }
}

Result HostNccl::Enqueue(CommHandle handle, CUstream_st& stream, std::vector<NcclCall> calls) {
  const int error = stream.Submit("a group of NCCL calls",
                                  [comm = CommOf(handle)->shared_from_this(), calls = std::move(calls)] {
                                    // As with NCCL an error does not stop the stream: the communicator tells
                                    // of it.
                                    if (!comm->failed && !RunGroup(*comm->inner, calls).ok())
                                      comm->failed = true;
                                    return 0;
                                  });
  return error == 0 ? nccl::kSuccess : nccl::kUnhandledCudaError;
}

}  // namespace ft::testing
