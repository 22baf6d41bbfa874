#include "runtime/base/exit_status.h"

namespace ft {

int ExitStatus(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kAlreadyExists:
      return kExitBadInput;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kAborted:
      return kExitPeerLost;
    default:
      return kExitIo;
  }
}

}  // namespace ft
