// What ranks try together when each of them can do its part: the folder of checkpoints, the links, the
// kernels, the state to go on from.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/executor/executor.h"
#include "tools/ftexec/check/links.h"
#include "tools/ftexec/check/preparation.h"
#include "tools/ftexec/peers.h"

namespace ft {

class Trial {
 public:
  // All must outlive it. `agree` is for what does not take long, `agree_on_files` for what may.
  // `on_executor` is told of the executor, and of null before it goes.
  Trial(const Flags& flags, PreparedCheck& prepared, Peers& peers, AgreeFunction agree,
        AgreeFunction agree_on_files, std::function<void(Executor*)> on_executor)
      : flags_(flags),
        prepared_(prepared),
        peers_(peers),
        agree_(std::move(agree)),
        agree_on_files_(std::move(agree_on_files)),
        on_executor_(std::move(on_executor)) {}

  // All ranks call each of these, in this order; what fails is a finding. Errors: after which the ranks have
  // nothing more to say to each other.

  // That all ranks see the folder of checkpoints, which is made and taken away again if it is not there.
  absl::Status TryFolder();
  // The links that the ranks' communicators use.
  absl::Status TryLinks();
  // The arena, the kernels, the checkpoint to go on from, and a forward pass.
  absl::Status TryKernels();
  // Once it is known where the run begins.
  void TryDisk();

  const RankResults& results() const { return results_; }
  // Empty until the links have been tried.
  const std::vector<LinkUse>& uses() const { return uses_; }
  const std::vector<LinkTry>& tries() const { return tries_; }

 private:
  const Job& job() const { return prepared_.job; }
  // Whether `status` is OK on every rank; a finding of this one where it is not.
  absl::StatusOr<bool> AllOk(const char* check, const absl::Status& status);
  absl::Status TryResume(const Executor& executor);
  absl::Status TrySpeed(Executor& executor);

  const Flags& flags_;
  PreparedCheck& prepared_;
  Peers& peers_;
  const AgreeFunction agree_;
  const AgreeFunction agree_on_files_;
  const std::function<void(Executor*)> on_executor_;
  RankResults results_;
  std::vector<LinkUse> uses_;
  std::vector<LinkTry> tries_;
  int64_t first_step_ = 0;
};

}  // namespace ft
