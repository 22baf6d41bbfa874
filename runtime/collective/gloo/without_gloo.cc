// In place of Gloo in an ftexec that is linked as one file.
#include "runtime/collective/gloo/gloo_communicator.h"

namespace ft {

absl::StatusOr<std::unique_ptr<Communicator>> CreateGlooCommunicator(Store* store,
                                                                     const GlooOptions& options) {
  return absl::FailedPreconditionError(
      "this ftexec was built without Gloo, which ranks on several hosts talk by; use one that was not built "
      "with FT_STATIC");
}

size_t GlooStagingBytes() { return 0; }

}  // namespace ft
