#include "runtime/collective/gloo/gloo_communicator.h"

#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/collective/gloo/gloo_exchange.h"
#include "runtime/collective/gloo/gloo_mesh.h"
#include "runtime/collective/rounds/round_communicator.h"

namespace ft {

absl::StatusOr<std::unique_ptr<Communicator>> CreateGlooCommunicator(Store* store,
                                                                     const GlooOptions& options) {
  FT_ASSIGN_OR_RETURN(auto context,
                      ConnectGlooMesh(store, {options.key, options.rank, options.size, options.address,
                                              options.connect_timeout, options.interrupted}));
  return CreateRoundCommunicator(
      std::make_unique<GlooExchange>(std::move(context), options.timeout, options.members));
}

size_t GlooStagingBytes() { return GlooExchange::StagingBytes(); }

}  // namespace ft
