// The part of NCCL's binary interface that we use, declared by ourselves: the library is loaded when a run
// wants it, so that programs are built and started without it, and without its header. nccl_abi_check.cc
// compares all of it with nccl.h where there is one.
#pragma once

#include <climits>
#include <cstddef>

struct ncclComm;

namespace ft::nccl {

using CommHandle = ::ncclComm*;

struct UniqueId {
  char internal[128];
};

enum Result : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

enum DataType : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kInt64 = 4,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
};

enum Operation : int { kSum = 0 };

inline constexpr int kUndefined = INT_MIN;  // a setting that is NCCL's to choose
inline constexpr int kNoColor = -1;         // in CommSplit: this rank is in no group

// NCCL's settings of a communicator as far as 2.25 knew them. A newer library takes those that follow from
// its defaults, by `size` and `version`.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 22500;
  int blocking = kUndefined;
  int cga_cluster_size = kUndefined;
  int min_ctas = kUndefined;
  int max_ctas = kUndefined;
  const char* net_name = nullptr;
  int split_share = kUndefined;
  int traffic_class = kUndefined;
};

// Oldest library that can do what we ask: 2.19 registers buffers, older ones split without our settings.
inline constexpr int kOldestVersion = 21900;

}  // namespace ft::nccl
