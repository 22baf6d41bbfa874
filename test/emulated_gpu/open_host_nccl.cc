#include "test/conformance/open_nccl.h"
#include "test/doubles/nccl/host_nccl.h"

namespace ft::conformance {

absl::StatusOr<std::shared_ptr<nccl::NcclApi>> OpenNccl() {
  return std::make_shared<testing::HostNccl>(23102);
}

}  // namespace ft::conformance
