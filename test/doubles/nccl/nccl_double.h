// What is allowed of calls and windows, whatever carries them out: calls come in groups, each of one
// communicator and one stream, only sums are reduced, and either both ends of a collective lie in windows, at
// the same places on every rank, or neither does.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/backends/cuda/device_code/gpu.h"  // the host's CUstream_st
#include "runtime/base/dtype.h"
#include "runtime/collective/nccl/nccl_api.h"

namespace ft::testing {

DType TypeOf(nccl::DataType type);

// Where a buffer lies on its rank: in which of the communicator's windows, as they were made, and at which
// byte of it.
struct NcclPlace {
  int64_t window = -1;  // none
  int64_t offset = 0;
  bool operator==(const NcclPlace&) const = default;
};

struct NcclCall {
  enum class Kind { kAllGather, kReduceScatter, kAllReduce, kBroadcast, kSend, kRecv };

  Kind kind;
  const void* src;
  void* dst;
  size_t count;
  nccl::DataType type;
  int peer;  // or root
  nccl::CommHandle comm;
  void* stream;
  NcclPlace src_at = {}, dst_at = {};

  size_t bytes() const { return count * SizeOf(TypeOf(type)); }
  bool is_transfer() const { return kind == Kind::kSend || kind == Kind::kRecv; }
};

// What has to be the same of a collective on every rank.
struct NcclShape {
  NcclCall::Kind kind = NcclCall::Kind::kAllGather;
  nccl::DataType type = nccl::kInt8;
  size_t count = 0;
  NcclPlace read = {}, written = {};  // where others read, and where they write
  bool operator==(const NcclShape&) const = default;
};
NcclShape ShapeOf(const NcclCall& call);

// What a rank wished for in a split.
struct SplitWish {
  int64_t color, key;
};

struct SplitPlace {
  int rank = 0, size = 0;
};
// Where rank `own` of the old communicator stands among those of its color: by their keys, then their ranks.
SplitPlace PlaceInSplit(const std::vector<SplitWish>& wishes, int own);

// What a library of that version takes from a configuration, whether it knows that, and whether it has
// windows.
nccl::CtaPolicy PolicyOf(const nccl::Config& config, int version);
bool Knows(int version, nccl::CtaPolicy policy);
bool HasWindowsAt(int version);

class NcclDouble : public nccl::NcclApi {
 public:
  nccl::Result GroupStart() final;
  nccl::Result GroupEnd() final;
  nccl::Result AllGather(const void* src, void* dst, size_t count, nccl::DataType type, nccl::CommHandle comm,
                         void* stream) final;
  nccl::Result ReduceScatter(const void* src, void* dst, size_t count, nccl::DataType type,
                             nccl::Operation operation, nccl::CommHandle comm, void* stream) final;
  nccl::Result AllReduce(const void* src, void* dst, size_t count, nccl::DataType type,
                         nccl::Operation operation, nccl::CommHandle comm, void* stream) final;
  nccl::Result Broadcast(const void* src, void* dst, size_t count, nccl::DataType type, int root,
                         nccl::CommHandle comm, void* stream) final;
  nccl::Result Send(const void* src, size_t count, nccl::DataType type, int peer, nccl::CommHandle comm,
                    void* stream) final;
  nccl::Result Recv(void* dst, size_t count, nccl::DataType type, int peer, nccl::CommHandle comm,
                    void* stream) final;

 protected:
  // A window that all ranks of the communicator have agreed on, until it is removed.
  nccl::WindowHandle AddWindow(nccl::CommHandle comm, const void* data, size_t bytes);
  nccl::Result RemoveWindow(nccl::CommHandle comm, nccl::WindowHandle window);
  void ForgetWindows(nccl::CommHandle comm);
  int CountWindows();  // of all communicators

  virtual int RanksOf(nccl::CommHandle comm) const = 0;
  // Whether the communicator takes a call now.
  virtual nccl::Result Admit(nccl::CommHandle) { return nccl::kSuccess; }
  // A group of calls, at least one, begins on its stream.
  virtual nccl::Result Enqueue(nccl::CommHandle comm, CUstream_st& stream, std::vector<NcclCall> calls) = 0;

 private:
  struct Window {
    const std::byte* data;
    size_t bytes;
    bool removed = false;
  };

  nccl::Result Add(NcclCall call);
  nccl::Result Flush();
  // Fills in where its buffers lie. Refuses collectives of which a window holds one end alone, or a part of
  // an end.
  nccl::Result Locate(NcclCall& call);

  std::mutex windows_mutex_;
  std::map<nccl::CommHandle, std::deque<Window>> windows_;
};

}  // namespace ft::testing
