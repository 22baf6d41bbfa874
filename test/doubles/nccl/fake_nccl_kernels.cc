#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/base/round_float.h"
#include "test/doubles/nccl/fake_nccl_state.h"

namespace ft::testing {
namespace {

using Kind = NcclCall::Kind;

struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};
float Load(Bf16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }
float Load(F16 x) { return F16ToFloat(x.bits); }
void Store(float x, Bf16& to) { to.bits = RoundToBF16(x); }
void Store(float x, F16& to) { to.bits = RoundToF16(x); }
template <typename T>
T Load(T x) {
  return x;
}
template <typename T>
void Store(T x, T& to) {
  to = x;
}

template <typename T>
void SumInto(const std::vector<const void*>& sources, size_t count, void* out) {
  using A = decltype(Load(T{}));
  auto* to = static_cast<T*>(out);
  for (size_t i = 0; i < count; ++i) {
    T sum{};
    for (size_t rank = sources.size(); rank-- > 0;)
      Store(static_cast<A>(Load(sum) + Load(static_cast<const T*>(sources[rank])[i])), sum);
    to[i] = sum;
  }
}

void SumInto(const std::vector<const void*>& sources, size_t count, DType type, void* out) {
  switch (type) {
    case DType::kF32:
      return SumInto<float>(sources, count, out);
    case DType::kF64:
      return SumInto<double>(sources, count, out);
    case DType::kBF16:
      return SumInto<Bf16>(sources, count, out);
    case DType::kF16:
      return SumInto<F16>(sources, count, out);
    case DType::kI32:
      return SumInto<uint32_t>(sources, count, out);
    case DType::kI64:
      return SumInto<uint64_t>(sources, count, out);
    case DType::kU8:
      return SumInto<uint8_t>(sources, count, out);
  }
}

using Lock = std::unique_lock<std::mutex>;

// Waits on the stream. False: aborted.
template <typename Condition>
bool Await(FakeNccl::Comm& comm, Lock& lock, const Condition& condition) {
  comm.clique->changed.wait(lock, [&] { return comm.aborted || condition(); });
  return !comm.aborted;
}

std::vector<std::byte> Compute(const FakeNccl::Comm& comm, const NcclCall& call,
                               const std::map<int, const NcclCall*>& calls) {
  const bool whole = call.kind == Kind::kAllGather;
  std::vector<std::byte> result(call.bytes() * (whole ? calls.size() : 1));
  std::vector<const void*> sources;
  const size_t own = call.kind == Kind::kReduceScatter ? static_cast<size_t>(comm.rank) * call.bytes() : 0;
  for (const auto& [rank, theirs] : calls) {
    const auto* data = static_cast<const std::byte*>(theirs->src);
    if (whole) std::memcpy(result.data() + static_cast<size_t>(rank) * call.bytes(), data, call.bytes());
    sources.push_back(data + own);
  }
  if (call.kind == Kind::kBroadcast)
    std::memcpy(result.data(), calls.at(call.peer)->src, call.bytes());
  else if (!whole)
    SumInto(sources, call.count, TypeOf(call.type), result.data());
  return result;
}

// 0, or an error of a kernel: ranks in different collectives.
int RunCollective(FakeNccl::Comm& comm, const NcclCall& call) {
  FakeNccl::Clique& clique = *comm.clique;
  Lock lock(clique.mutex);
  const uint64_t number = comm.rounds++;
  auto& round = clique.rounds[number];
  round.calls[comm.rank] = &call;
  clique.changed.notify_all();
  const auto all = static_cast<size_t>(clique.size);
  if (!Await(comm, lock, [&] { return round.calls.size() == all; })) {
    round.calls.erase(comm.rank);  // its buffers may be gone when the last rank comes
    return 0;
  }
  for (const auto& [rank, theirs] : round.calls) {
    if (theirs->kind != call.kind || theirs->count != call.count || theirs->type != call.type) return 719;
  }
  lock.unlock();
  const std::vector<std::byte> result = Compute(comm, call, round.calls);
  lock.lock();
  ++round.computed;
  clique.changed.notify_all();
  if (!Await(comm, lock, [&] { return round.computed == clique.size; })) return 0;
  lock.unlock();
  std::copy(result.begin(), result.end(), static_cast<std::byte*>(call.dst));
  lock.lock();
  if (++round.left == clique.size) clique.rounds.erase(number);
  return 0;
}

int RunTransfers(FakeNccl::Comm& comm, const std::vector<const NcclCall*>& calls) {
  FakeNccl::Clique& clique = *comm.clique;
  std::deque<FakeNccl::Clique::Message> sent;
  Lock lock(clique.mutex);
  for (const NcclCall* call : calls) {
    if (call->kind != Kind::kSend) continue;
    sent.push_back({call});
    clique.from[static_cast<size_t>(comm.rank)][call->peer].push_back(&sent.back());
  }
  clique.changed.notify_all();
  int error = 0;
  bool aborted = false;
  for (const NcclCall* call : calls) {
    if (call->kind != Kind::kRecv || aborted) continue;
    auto& box = clique.from[static_cast<size_t>(call->peer)][comm.rank];
    if (!Await(comm, lock, [&] { return !box.empty(); })) {
      aborted = true;
      continue;
    }
    FakeNccl::Clique::Message& message = *box.front();
    box.pop_front();
    if (message.call->bytes() != call->bytes()) error = 719;
    std::memcpy(call->dst, message.call->src, std::min(message.call->bytes(), call->bytes()));
    message.taken = true;
    clique.changed.notify_all();
  }
  Await(comm, lock, [&] { return std::all_of(sent.begin(), sent.end(), [](auto& m) { return m.taken; }); });
  for (auto& [to, box] : clique.from[static_cast<size_t>(comm.rank)]) {  // what nobody takes any more
    std::erase_if(box, [&](auto* m) {
      return std::any_of(sent.begin(), sent.end(), [&](auto& s) { return &s == m; });
    });
  }
  return error;
}

}  // namespace

int RunGroup(FakeNccl::Comm& comm, const std::vector<NcclCall>& calls) {
  {
    const Lock lock(comm.clique->mutex);
    if (comm.aborted) return 0;
  }
  std::vector<const NcclCall*> transfers;
  for (const NcclCall& call : calls) {
    if (call.is_transfer()) {
      transfers.push_back(&call);
    } else if (const int error = RunCollective(comm, call); error != 0) {
      return error;
    }
  }
  return transfers.empty() ? 0 : RunTransfers(comm, transfers);
}

}  // namespace ft::testing
