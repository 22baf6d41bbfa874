// What the doubles of NCCL have in common: calls come in groups, each of one communicator and one stream, and
// only sums are reduced.
#pragma once

#include <vector>

#include "runtime/backends/cuda/device_code/gpu.h"  // the host's CUstream_st
#include "runtime/base/dtype.h"
#include "runtime/collective/nccl/nccl_api.h"

namespace ft::testing {

DType TypeOf(nccl::DataType type);

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

  size_t bytes() const { return count * SizeOf(TypeOf(type)); }
  bool is_transfer() const { return kind == Kind::kSend || kind == Kind::kRecv; }
};

// What a rank wished for in a split.
struct SplitWish {
  int64_t color, key;
};

struct SplitPlace {
  int rank = 0, size = 0;
};
// Where rank `own` of the old communicator stands among those of its color: by their keys, then their ranks.
SplitPlace PlaceInSplit(const std::vector<SplitWish>& wishes, int own);

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
  // Whether the communicator takes a call now.
  virtual nccl::Result Admit(nccl::CommHandle) { return nccl::kSuccess; }
  // A group of calls, at least one, begins on its stream.
  virtual nccl::Result Enqueue(nccl::CommHandle comm, CUstream_st& stream, std::vector<NcclCall> calls) = 0;

 private:
  nccl::Result Add(NcclCall call);
  nccl::Result Flush();
};

}  // namespace ft::testing
