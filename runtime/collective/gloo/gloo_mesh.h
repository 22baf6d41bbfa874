// Gloo's connections between all ranks, and its exceptions turned into Status.
#pragma once

#include <gloo/rendezvous/context.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/collective/rendezvous/store.h"

namespace ft {

struct GlooMeshOptions {
  std::string key;  // prefix of all keys in the store
  int rank = 0;
  int size = 1;
  std::string address;  // numeric, of the interface to listen on
  absl::Duration timeout;
  std::function<absl::Status()> interrupted;  // may be empty
};

// Errors: Unavailable when a rank does not come, FailedPrecondition without an address.
absl::StatusOr<std::shared_ptr<gloo::rendezvous::Context>> ConnectGlooMesh(Store* store,
                                                                           const GlooMeshOptions& options);

// Runs `body`, which returns a Status and calls Gloo; an exception becomes Unavailable with what it says, and
// no SIGPIPE gets out. Every call that may write to a connection goes through this.
absl::Status CatchGloo(absl::FunctionRef<absl::Status()> body);

}  // namespace ft
