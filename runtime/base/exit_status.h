// What a program of this project exits with; scripts depend on these numbers.
#pragma once

#include "absl/status/status.h"

namespace ft {

inline constexpr int kExitOk = 0;
inline constexpr int kExitUsage = 2;            // the command line is wrong
inline constexpr int kExitBadInput = 65;        // a file or the environment holds something we cannot use
inline constexpr int kExitIo = 74;              // the system refused: file, memory, socket
inline constexpr int kExitPeerLost = 75;        // another rank is gone
inline constexpr int kExitEndedAsWished = 143;  // a signal asked to save and end, and that was done

// InvalidArgument, FailedPrecondition, OutOfRange, DataLoss, AlreadyExists -> 65; Unavailable, Aborted -> 75;
// everything else that is not OK -> 74. Usage errors never become a Status: the parser of flags reports them.
int ExitStatus(const absl::Status& status);

}  // namespace ft
