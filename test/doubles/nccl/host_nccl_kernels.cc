#include <algorithm>
#include <cstring>
#include <iostream>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/collective/tree_sum.h"
#include "test/doubles/nccl/host_nccl_comm.h"

namespace ft::testing {
namespace {

using Kind = NcclCall::Kind;

absl::Status CheckShapes(Communicator& inner, const NcclCall& call) {
  FT_ASSIGN_OR_RETURN(const bool same, AllSame(inner, ShapeOf(call)));
  return same ? absl::OkStatus() : absl::InvalidArgumentError("ranks are in different collectives");
}

// In other order than the tree's, and rounded each time, so that nobody takes these sums for that.
absl::Status Sum(Communicator& inner, const NcclCall& call) {
  const auto size = static_cast<size_t>(inner.size());
  const bool scatters = call.kind == Kind::kReduceScatter;
  const size_t whole = call.bytes() * (scatters ? size : 1);
  std::vector<std::byte> all(whole * size);
  FT_RETURN_IF_ERROR(inner.AllGather(call.src, all.data(), whole, {"summands", 0}));
  const size_t own = scatters ? call.bytes() * static_cast<size_t>(inner.rank()) : 0;
  const auto from = [&](size_t rank) { return all.data() + rank * whole + own; };
  std::memcpy(call.dst, from(size - 1), call.bytes());
  for (size_t rank = size - 1; rank-- > 0;)
    TreeSum({call.dst, from(rank)}, call.count, TypeOf(call.type), call.dst);  // of two
  return absl::OkStatus();
}

absl::Status RunCollective(Communicator& inner, const NcclCall& call) {
  const CollectiveLabel label{"emulated NCCL", 0};
  switch (call.kind) {
    case Kind::kAllGather:
      return inner.AllGather(call.src, call.dst, call.bytes(), label);
    case Kind::kReduceScatter:
    case Kind::kAllReduce:
      return Sum(inner, call);
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

absl::Status Run(Communicator& inner, const std::vector<NcclCall>& calls) {
  std::vector<const NcclCall*> transfers;
  for (const NcclCall& call : calls) {
    if (call.is_transfer()) {
      transfers.push_back(&call);
    } else {
      FT_RETURN_IF_ERROR(CheckShapes(inner, call));
      FT_RETURN_IF_ERROR(RunCollective(inner, call));
    }
  }
  return transfers.empty() ? absl::OkStatus() : RunTransfers(inner, transfers);
}

bool GathersInWindow(const NcclCall& call) {
  return call.kind == Kind::kAllGather && call.dst_at.window >= 0;
}

[[noreturn]] void HangForEver() {
  std::cerr << "a gather by copy engines goes on without end (emulated)" << std::endl;
  for (;;) absl::SleepFor(absl::Hours(1));
}

}  // namespace

void HostNccl::Comm::Come(const char* place) {
  store->Set(absl::StrCat(key, "/", place, "/", rank), "").IgnoreError();
}

bool HostNccl::Comm::HaveAllCome(const char* place) {
  std::vector<std::string> keys;
  for (int r = 0; r < size; ++r) keys.push_back(absl::StrCat(key, "/", place, "/", r));
  return store->Check(keys).value_or(true);
}

void HostNccl::Comm::AbortInner() {
  if (Communicator* const made = ready) made->Abort(absl::UnavailableError("aborted"));
}

bool HostNccl::Comm::holds() {
  const std::lock_guard<std::mutex> lock(mutex);
  return held > 0;
}

void HostNccl::Comm::AwaitNoneHeld() {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [this] { return held == 0; });
}

HostNccl::Held::Held(std::shared_ptr<Comm> comm) : comm_(std::move(comm)) {
  const std::lock_guard<std::mutex> lock(comm_->mutex);
  ++comm_->held;
}

HostNccl::Held::~Held() {
  const std::lock_guard<std::mutex> lock(comm_->mutex);
  --comm_->held;
  comm_->changed.notify_all();
}

void RunGroup(HostNccl::Comm& comm, const std::vector<NcclCall>& calls) {
  if (comm.failed) return;
  // As with NCCL an error does not stop the stream: the communicator tells of it.
  const absl::Status status = Run(*comm.inner, calls);
  if (status.ok()) return;
  comm.failed = true;
  const bool copy_engines = comm.copy_engines && std::any_of(calls.begin(), calls.end(), GathersInWindow);
  if (copy_engines && !absl::IsInvalidArgument(status)) HangForEver();  // a rank is missing
}

}  // namespace ft::testing
