// Built only where NCCL's header is: does nccl_abi.h say the same?
#include <nccl.h>

#include <type_traits>

#include "runtime/collective/nccl/nccl_abi.h"

namespace ft::nccl {

static_assert(std::is_same_v<CommHandle, ncclComm_t>);
static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId) && alignof(UniqueId) == alignof(ncclUniqueId));
static_assert(sizeof(Result) == sizeof(ncclResult_t) && sizeof(DataType) == sizeof(ncclDataType_t));
static_assert(sizeof(Operation) == sizeof(ncclRedOp_t));

static_assert(int{kSuccess} == ncclSuccess && int{kUnhandledCudaError} == ncclUnhandledCudaError);
static_assert(int{kSystemError} == ncclSystemError && int{kInternalError} == ncclInternalError);
static_assert(int{kInvalidArgument} == ncclInvalidArgument && int{kInvalidUsage} == ncclInvalidUsage);
static_assert(int{kRemoteError} == ncclRemoteError && int{kInProgress} == ncclInProgress);

static_assert(int{kInt8} == ncclInt8 && int{kUint8} == ncclUint8 && int{kInt32} == ncclInt32);
static_assert(int{kInt64} == ncclInt64 && int{kFloat16} == ncclFloat16 && int{kFloat32} == ncclFloat32);
static_assert(int{kFloat64} == ncclFloat64 && int{kBfloat16} == ncclBfloat16);
static_assert(int{kSum} == ncclSum);

static_assert(kUndefined == NCCL_CONFIG_UNDEF_INT && kNoColor == NCCL_SPLIT_NOCOLOR);
static_assert(offsetof(Config, size) == offsetof(ncclConfig_t, size));
static_assert(offsetof(Config, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(Config, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(Config, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(Config, cga_cluster_size) == offsetof(ncclConfig_t, cgaClusterSize));
static_assert(offsetof(Config, min_ctas) == offsetof(ncclConfig_t, minCTAs));
static_assert(offsetof(Config, max_ctas) == offsetof(ncclConfig_t, maxCTAs));
static_assert(offsetof(Config, net_name) == offsetof(ncclConfig_t, netName));
static_assert(offsetof(Config, split_share) == offsetof(ncclConfig_t, splitShare));
static_assert(offsetof(Config, traffic_class) == offsetof(ncclConfig_t, trafficClass));
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
static_assert(offsetof(Config, comm_name) == offsetof(ncclConfig_t, commName));
static_assert(offsetof(Config, collnet_enable) == offsetof(ncclConfig_t, collnetEnable));
static_assert(offsetof(Config, cta_policy) == offsetof(ncclConfig_t, CTAPolicy));
static_assert(static_cast<int>(CtaPolicy::kEfficiency) == NCCL_CTA_POLICY_EFFICIENCY);
static_assert(kSymmetric == NCCL_WIN_COLL_SYMMETRIC);
static_assert(sizeof(Config) <= sizeof(ncclConfig_t));
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
static_assert(std::is_same_v<WindowHandle, ncclWindow_t>);
static_assert(static_cast<int>(CtaPolicy::kZero) == NCCL_CTA_POLICY_ZERO);
#endif
static_assert(kConfigBytesBeforePolicies <= sizeof(ncclConfig_t));
static_assert(Config{}.magic == ncclConfig_t(NCCL_CONFIG_INITIALIZER).magic);
static_assert(NCCL_VERSION_CODE >= kOldestVersion);

}  // namespace ft::nccl
