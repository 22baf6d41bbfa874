#include "test/doubles/nccl/nccl_double.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace ft::testing {

using nccl::CommHandle;
using nccl::DataType;
using nccl::Operation;
using nccl::Result;

namespace {

using Kind = NcclCall::Kind;

thread_local int group_depth = 0;
thread_local std::vector<NcclCall> group;

}  // namespace

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

SplitPlace PlaceInSplit(const std::vector<SplitWish>& wishes, int own) {
  const auto me = static_cast<size_t>(own);
  SplitPlace place;
  for (size_t rank = 0; rank < wishes.size(); ++rank) {
    if (wishes[rank].color != wishes[me].color) continue;
    ++place.size;
    if (std::pair(wishes[rank].key, rank) < std::pair(wishes[me].key, me)) ++place.rank;
  }
  return place;
}

nccl::CtaPolicy PolicyOf(const nccl::Config& config, int version) {
  return version >= 22700 && config.size >= sizeof(nccl::Config) ? config.cta_policy
                                                                 : nccl::CtaPolicy::kLibrarys;
}

bool Knows(int version, nccl::CtaPolicy policy) {
  return policy != nccl::CtaPolicy::kZero || version >= 22800;
}

bool HasWindowsAt(int version) { return version >= 22700; }

NcclShape ShapeOf(const NcclCall& call) {
  const bool reads = call.kind == Kind::kReduceScatter || call.kind == Kind::kAllReduce;
  const bool writes =
      call.kind == Kind::kAllGather || call.kind == Kind::kAllReduce || call.kind == Kind::kBroadcast;
  return {.kind = call.kind,
          .type = call.type,
          .count = call.count,
          .read = reads ? call.src_at : NcclPlace{},
          .written = writes ? call.dst_at : NcclPlace{}};
}

nccl::WindowHandle NcclDouble::AddWindow(CommHandle comm, const void* data, size_t bytes) {
  const std::lock_guard<std::mutex> lock(windows_mutex_);
  auto& windows = windows_[comm];
  windows.push_back({.data = static_cast<const std::byte*>(data), .bytes = bytes});
  return reinterpret_cast<nccl::WindowHandle>(&windows.back());
}

Result NcclDouble::RemoveWindow(CommHandle comm, nccl::WindowHandle window) {
  const std::lock_guard<std::mutex> lock(windows_mutex_);
  for (Window& known : windows_[comm]) {
    if (reinterpret_cast<nccl::WindowHandle>(&known) != window || known.removed) continue;
    known.removed = true;
    return nccl::kSuccess;
  }
  return nccl::kInvalidArgument;
}

void NcclDouble::ForgetWindows(CommHandle comm) {
  const std::lock_guard<std::mutex> lock(windows_mutex_);
  windows_.erase(comm);
}

int NcclDouble::CountWindows() {
  const std::lock_guard<std::mutex> lock(windows_mutex_);
  ptrdiff_t count = 0;
  for (const auto& [comm, windows] : windows_)
    count += std::count_if(windows.begin(), windows.end(), [](const Window& one) { return !one.removed; });
  return static_cast<int>(count);
}

Result NcclDouble::Locate(NcclCall& call) {
  const std::lock_guard<std::mutex> lock(windows_mutex_);
  const auto& windows = windows_[call.comm];
  bool cut = false;
  const auto find = [&](const void* data, size_t bytes) {
    const auto* begin = static_cast<const std::byte*>(data);
    for (size_t i = 0; i < windows.size(); ++i) {
      const Window& window = windows[i];
      const std::byte* const end = window.data + window.bytes;
      if (window.removed || begin >= end || begin + bytes <= window.data) continue;
      cut = cut || begin < window.data || begin + bytes > end;
      return NcclPlace{static_cast<int64_t>(i), begin - window.data};
    }
    return NcclPlace{};
  };
  const size_t whole = call.bytes() * static_cast<size_t>(RanksOf(call.comm));
  call.src_at = find(call.src, call.kind == Kind::kReduceScatter ? whole : call.bytes());
  call.dst_at = find(call.dst, call.kind == Kind::kAllGather ? whole : call.bytes());
  const bool one_sided = (call.src_at.window < 0) != (call.dst_at.window < 0);
  return !call.is_transfer() && (cut || one_sided) ? nccl::kInvalidUsage : nccl::kSuccess;
}

Result NcclDouble::GroupStart() {
  ++group_depth;
  return nccl::kSuccess;
}

Result NcclDouble::GroupEnd() {
  if (--group_depth > 0) return nccl::kSuccess;
  return Flush();
}

Result NcclDouble::Add(NcclCall call) {
  if (const Result refused = Admit(call.comm); refused != nccl::kSuccess) return refused;
  if (const Result refused = Locate(call); refused != nccl::kSuccess) return refused;
  group.push_back(call);
  return group_depth > 0 ? nccl::kSuccess : Flush();
}

Result NcclDouble::Flush() {
  std::vector<NcclCall> calls = std::exchange(group, {});
  if (calls.empty()) return nccl::kSuccess;
  for (const NcclCall& call : calls) {
    if (call.comm != calls[0].comm || call.stream != calls[0].stream) return nccl::kInvalidUsage;
  }
  const CommHandle comm = calls[0].comm;
  auto* stream = static_cast<CUstream_st*>(calls[0].stream);
  return Enqueue(comm, *stream, std::move(calls));
}

Result NcclDouble::AllGather(const void* src, void* dst, size_t count, DataType type, CommHandle comm,
                             void* stream) {
  return Add({Kind::kAllGather, src, dst, count, type, 0, comm, stream});
}
Result NcclDouble::ReduceScatter(const void* src, void* dst, size_t count, DataType type, Operation operation,
                                 CommHandle comm, void* stream) {
  if (operation != nccl::kSum) return nccl::kInvalidArgument;  // sums alone, see NcclCommunicator
  return Add({Kind::kReduceScatter, src, dst, count, type, 0, comm, stream});
}
Result NcclDouble::AllReduce(const void* src, void* dst, size_t count, DataType type, Operation operation,
                             CommHandle comm, void* stream) {
  if (operation != nccl::kSum) return nccl::kInvalidArgument;  // sums alone, see NcclCommunicator
  return Add({Kind::kAllReduce, src, dst, count, type, 0, comm, stream});
}
Result NcclDouble::Broadcast(const void* src, void* dst, size_t count, DataType type, int root,
                             CommHandle comm, void* stream) {
  return Add({Kind::kBroadcast, src, dst, count, type, root, comm, stream});
}
Result NcclDouble::Send(const void* src, size_t count, DataType type, int peer, CommHandle comm,
                        void* stream) {
  return Add({Kind::kSend, src, nullptr, count, type, peer, comm, stream});
}
Result NcclDouble::Recv(void* dst, size_t count, DataType type, int peer, CommHandle comm, void* stream) {
  return Add({Kind::kRecv, nullptr, dst, count, type, peer, comm, stream});
}

}  // namespace ft::testing
