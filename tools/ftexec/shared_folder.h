// A folder that all ranks write into.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "runtime/executor/checkpoint_saver.h"

namespace ft {

struct SharedFolder {
  std::string option;  // "--checkpoint-dir", for messages
  std::string folder;
  std::string mark;                    // name of a file in it, which is made and removed again
  std::function<absl::Status()> make;  // on rank 0: puts the folder there
};

// That every rank sees one folder and can write in it: rank 0 makes a file that all others must see, and each
// rank one of its own. All ranks call it, after they met; nothing stays behind. Errors, on all ranks, naming
// one: FailedPrecondition where a rank sees another folder, the system's (exit status 74), those of `make`.
absl::Status CheckSharedFolder(const SharedFolder& shared, int rank, const AgreeFunction& agree);

}  // namespace ft
