// The part of NCCL's binary interface that we use, declared by ourselves: the library is loaded when a run
// wants it, so that programs are built and started without it, and without its header. nccl_abi_check.cc
// compares all of it with nccl.h where there is one.
#pragma once

#include <climits>
#include <cstddef>

struct ncclComm;
struct ncclWindow_vidmem;

namespace ft::nccl {

using CommHandle = ::ncclComm*;
using WindowHandle = ::ncclWindow_vidmem*;

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

inline constexpr int kSymmetric = 1;  // of windows: at the same places on every rank

// How much of a GPU's multiprocessors collectives take.
enum class CtaPolicy : int { kLibrarys = kUndefined, kEfficiency = 1, kZero = 2 };

// NCCL's settings of a communicator as far as 2.27 knew them. Another library takes what it knows and we do
// not from its defaults, by `size` and `version`.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 22700;
  int blocking = kUndefined;
  int cga_cluster_size = kUndefined;
  int min_ctas = kUndefined;
  int max_ctas = kUndefined;
  const char* net_name = nullptr;
  int split_share = kUndefined;
  int traffic_class = kUndefined;
  const char* comm_name = nullptr;
  int collnet_enable = kUndefined;
  CtaPolicy cta_policy = CtaPolicy::kLibrarys;
};
// Of what libraries knew that have no policies.
inline constexpr size_t kConfigBytesBeforePolicies = offsetof(Config, comm_name);
inline constexpr unsigned kVersionBeforePolicies = 22500;

// Oldest library that can do what we ask: 2.19 registers buffers, older ones split without our settings.
inline constexpr int kOldestVersion = 21900;

}  // namespace ft::nccl
