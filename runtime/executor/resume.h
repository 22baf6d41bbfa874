// Which checkpoint a run goes on from, and its state into the arena.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/state/checkpoint_reader.h"
#include "runtime/executor/checkpoint_saver.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/load_state.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

struct ResumeRequest {
  std::string folder = {};       // of checkpoints: the newest that is whole; or
  std::string checkpoint = {};   // this one alone
  std::string optimizer = {};    // which the checkpoint has to be of
  std::string fingerprint = {};  // ModelFingerprint of the plan, likewise
  // Of weights alone, whatever optimizer they had; the state is WeightsOf that of the plan.
  bool weights_only = false;
};

struct Resumed {
  std::unique_ptr<CheckpointReader> reader;  // null: there was none to go on from
  std::vector<std::string> notes;            // on rank 0: why others were passed over
};

// All ranks call it: rank 0 chooses, all load what they hold, and when one cannot, `folder`'s next one is
// tried on all. The checksum of every block is verified on the way by one of them at least. The arena must be
// fresh; where nothing is resumed it is as it was. Errors: of `checkpoint`, whatever keeps it from being
// loaded; InvalidArgument when the checkpoint is of another model or optimizer; those of `agree`.
absl::StatusOr<Resumed> Resume(const ResumeRequest& request, const proto::Plan& plan,
                               const StateLayout& state, const Executor& executor,
                               const AgreeFunction& agree);

}  // namespace ft
