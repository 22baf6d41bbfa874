#include "test/conformance/open_nccl.h"

namespace ft::conformance {

absl::StatusOr<std::shared_ptr<nccl::NcclApi>> OpenNccl() { return nccl::LoadNccl(); }

}  // namespace ft::conformance
