// Parameters from all ranks into a folder that transformers loads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"
#include "runtime/collective/communicator.h"
#include "runtime/executor/executor.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

struct FolderRequest {
  std::string folder;          // is made; nothing may be there
  std::optional<DType> dtype;  // of the tensors; as they are at rest unless given
  uint64_t max_file_bytes = uint64_t{5} * 1000 * 1000 * 1000;
  // Folders of transformers: what the run started from, whose config.json has what no fact says (tokens,
  // names of labels), and where the tokenizer's files are. Empty: none.
  std::string origin;
  std::string tokenizer;
};

// What came of it on rank 0.
struct SavedFolder {
  int files = 0;
  uint64_t bytes = 0;
  std::vector<std::string> notes;  // lines for the user: what is missing, values that became infinite
};

// Every rank calls it, between steps, with a communicator over all ranks; rank 0 writes safetensors under
// Hugging Face's names, tied ones once, in files of at most `max_file_bytes` of tensors with an index,
// config.json from the plan's facts, and copies of the tokenizer's files. The folder is there whole or not at
// all. Errors: those of StreamWeights, StagedFolder and the file system on rank 0; of the plan's facts, where
// it has any.
absl::StatusOr<SavedFolder> SaveFolder(const proto::Plan& plan, const Executor& executor,
                                       Communicator& communicator, const FolderRequest& request);

// What would go wrong at the end of a run, as far as that can be known: something is at the folder's place,
// no room, a file of tensors too large for the system. `request` of rank 0. Errors: those.
absl::Status CheckFolderOutput(const proto::Plan& plan, const FolderRequest& request);

// Bytes of the tensors in it.
absl::StatusOr<uint64_t> BytesOfFolder(const proto::Plan& plan, const FolderRequest& request);

}  // namespace ft
