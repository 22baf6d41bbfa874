// Communicators of any backend, for tests of what they have in common. kNccl stands for its deterministic
// mode on fake GPUs, with calls that wait.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/collective/create.h"
#include "test/doubles/nccl/fake_gpus.h"

namespace ft::testing {

// One for all ranks of a test, which are threads.
class AnyBackend {
 public:
  explicit AnyBackend(CollectiveBackend backend) : backend_(backend) {}

  CommunicatorOptions Options() {
    CommunicatorOptions options;
    options.backend = backend_;
    options.timeout = absl::Seconds(30);
    if (OnGpus()) {
      options.cuda = gpus_.Side();
      options.deterministic = true;
    }
    return options;
  }

  absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Create(
      const Rendezvous& rendezvous, const std::vector<CommunicatorGroup>& groups) {
    return Wrap(CreateCommunicators(rendezvous, groups, Options()));
  }
  absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Create(const Rendezvous& rendezvous, int count) {
    return Wrap(CreateCommunicators(rendezvous, count, Options()));
  }

  size_t Staging(int ranks) const { return StagingBytes(backend_, ranks, OnGpus()); }

 private:
  bool OnGpus() const { return backend_ == CollectiveBackend::kNccl; }

  absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Wrap(
      absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> made) {
    if (made.ok() && OnGpus()) {
      for (auto& communicator : *made)
        communicator = std::make_unique<WaitingCommunicator>(std::move(communicator));
    }
    return made;
  }

  const CollectiveBackend backend_;
  FakeGpus gpus_;
};

}  // namespace ft::testing
