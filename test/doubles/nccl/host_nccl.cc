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
#include "runtime/backends/cuda/device_code/gpu.h"  // the host's CUstream_st
#include "runtime/base/status_macros.h"
#include "runtime/collective/local/local_communicator.h"
#include "runtime/collective/rendezvous/tcp_store_client.h"
#include "runtime/collective/shm/shm_communicator.h"

namespace ft::testing {

using nccl::CommHandle;
using nccl::DataType;
using nccl::Operation;
using nccl::Result;

namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

enum class Kind { kAllGather, kReduceScatter, kAllReduce, kBroadcast, kSend, kRecv };

DType TypeOf(DataType type) {
  switch (type) {
    case nccl::kFloat32:
      return DType::kF32;
    case nccl::kFloat64:
      return DType::kF64;
    case nccl::kFloat16:
      return DType::kF16;
    case nccl::kBfloat16:
      return DType::kBF16;
    case nccl::kInt32:
      return DType::kI32;
    case nccl::kInt64:
      return DType::kI64;
    case nccl::kInt8:
    case nccl::kUint8:
      break;
  }
  return DType::kU8;
}

}  // namespace

struct HostNccl::Call {
  Kind kind;
  const void* src;
  void* dst;
  size_t count;
  DataType type;
  int peer;  // or root
  Comm* comm;
  CUstream_st* stream;
  size_t bytes() const { return count * SizeOf(TypeOf(type)); }
};

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
using Call = HostNccl::Call;

Comm* CommOf(CommHandle handle) { return reinterpret_cast<Comm*>(handle); }

thread_local int group_depth = 0;
thread_local std::vector<Call> group;

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

struct Wish {
  int64_t color, key;
};

// `child` is taken over by the caller when there is a color.
absl::Status SplitOff(Comm& parent, int color, int key, Comm& child) {
  const Wish own{color, key};
  std::vector<Wish> wishes(static_cast<size_t>(parent.inner->size()));
  FT_RETURN_IF_ERROR(parent.inner->AllGather(&own, wishes.data(), sizeof(Wish), {"split", 0}));
  const int number = parent.splits++;
  if (color == nccl::kNoColor) return absl::OkStatus();
  int rank = 0, size = 0;
  for (size_t r = 0; r < wishes.size(); ++r) {
    if (wishes[r].color != color) continue;
    ++size;
    const auto me = static_cast<size_t>(parent.inner->rank());
    if (std::pair(wishes[r].key, r) < std::pair(own.key, me)) ++rank;
  }
  child.store = parent.store;
  child.key = absl::StrCat(parent.key, "/", number, "/", color);
  return Join(child, rank, size);
}

absl::Status RunCollective(Communicator& inner, const Call& call) {
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
absl::Status RunTransfers(Communicator& inner, const std::vector<const Call*>& calls) {
  const auto size = static_cast<size_t>(inner.size()), me = static_cast<size_t>(inner.rank());
  std::vector<uint64_t> row(size), table(size * size);  // bytes from rank to rank
  for (const Call* call : calls) {
    if (call->kind == Kind::kSend) row[static_cast<size_t>(call->peer)] += call->bytes();
  }
  FT_RETURN_IF_ERROR(inner.AllGather(row.data(), table.data(), size * 8, {"sizes of transfers", 0}));
  for (size_t from = 0; from < size; ++from) {
    const auto begin = table.begin() + static_cast<ptrdiff_t>(from * size);
    std::vector<std::byte> shown(std::accumulate(begin, begin + static_cast<ptrdiff_t>(size), uint64_t{0}));
    std::vector<uint64_t> at(size);
    std::exclusive_scan(begin, begin + static_cast<ptrdiff_t>(size), at.begin(), uint64_t{0});
    for (const Call* call : calls) {
      if (from != me || call->kind != Kind::kSend) continue;
      std::memcpy(shown.data() + at[static_cast<size_t>(call->peer)], call->src, call->bytes());
      at[static_cast<size_t>(call->peer)] += call->bytes();
    }
    FT_RETURN_IF_ERROR(inner.Broadcast(shown.data(), shown.size(), static_cast<int>(from), {"transfers", 0}));
    uint64_t taken = 0;
    for (const Call* call : calls) {
      if (call->kind != Kind::kRecv || static_cast<size_t>(call->peer) != from) continue;
      if (taken + call->bytes() > table[from * size + me]) return absl::InternalError("less was sent");
      std::memcpy(call->dst, shown.data() + at[me] + taken, call->bytes());
      taken += call->bytes();
    }
    if (from != me && taken != table[from * size + me]) return absl::InternalError("more was sent");
  }
  return absl::OkStatus();
}

absl::Status RunGroup(Communicator& inner, const std::vector<Call>& calls) {
  std::vector<const Call*> transfers;
  for (const Call& call : calls) {
    if (call.kind == Kind::kSend || call.kind == Kind::kRecv) {
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

Result HostNccl::GroupStart() {
  ++group_depth;
  return nccl::kSuccess;
}

Result HostNccl::GroupEnd() {
  if (--group_depth > 0) return nccl::kSuccess;
  return Flush();
}

Result HostNccl::Add(Call call) {
  group.push_back(call);
  return group_depth > 0 ? nccl::kSuccess : Flush();
}

Result HostNccl::Flush() {
  std::vector<Call> calls = std::exchange(group, {});
  if (calls.empty()) return nccl::kSuccess;
  const std::shared_ptr<Comm> comm = calls[0].comm->shared_from_this();
  CUstream_st& stream = *calls[0].stream;
  const int error = stream.Submit("a group of NCCL calls", [comm, calls = std::move(calls)] {
    // As with NCCL an error does not stop the stream: the communicator tells of it.
    if (!comm->failed && !RunGroup(*comm->inner, calls).ok()) comm->failed = true;
    return 0;
  });
  return error == 0 ? nccl::kSuccess : nccl::kUnhandledCudaError;
}

Result HostNccl::AllGather(const void* src, void* dst, size_t count, DataType type, CommHandle comm,
                           void* stream) {
  return Add({Kind::kAllGather, src, dst, count, type, 0, CommOf(comm), static_cast<CUstream_st*>(stream)});
}
Result HostNccl::ReduceScatter(const void* src, void* dst, size_t count, DataType type, Operation operation,
                               CommHandle comm, void* stream) {
  if (operation != nccl::kSum) return nccl::kInvalidArgument;  // sums alone, see NcclCommunicator
  return Add(
      {Kind::kReduceScatter, src, dst, count, type, 0, CommOf(comm), static_cast<CUstream_st*>(stream)});
}
Result HostNccl::AllReduce(const void* src, void* dst, size_t count, DataType type, Operation operation,
                           CommHandle comm, void* stream) {
  if (operation != nccl::kSum) return nccl::kInvalidArgument;  // sums alone, see NcclCommunicator
  return Add({Kind::kAllReduce, src, dst, count, type, 0, CommOf(comm), static_cast<CUstream_st*>(stream)});
}
Result HostNccl::Broadcast(const void* src, void* dst, size_t count, DataType type, int root, CommHandle comm,
                           void* stream) {
  return Add(
      {Kind::kBroadcast, src, dst, count, type, root, CommOf(comm), static_cast<CUstream_st*>(stream)});
}
Result HostNccl::Send(const void* src, size_t count, DataType type, int peer, CommHandle comm, void* stream) {
  return Add({Kind::kSend, src, nullptr, count, type, peer, CommOf(comm), static_cast<CUstream_st*>(stream)});
}
Result HostNccl::Recv(void* dst, size_t count, DataType type, int peer, CommHandle comm, void* stream) {
  return Add({Kind::kRecv, nullptr, dst, count, type, peer, CommOf(comm), static_cast<CUstream_st*>(stream)});
}

}  // namespace ft::testing
