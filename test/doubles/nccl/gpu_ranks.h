// Ranks on fake GPUs.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "runtime/collective/create.h"
#include "test/doubles/nccl/fake_gpus.h"

namespace ft::testing {

using Communicators = std::vector<std::unique_ptr<Communicator>>;

inline CommunicatorOptions OnGpus(FakeGpus& gpus, bool deterministic) {
  CommunicatorOptions options;
  options.timeout = absl::Seconds(30);
  options.cuda = gpus.Side();
  options.deterministic = deterministic;
  return options;
}

inline Communicators Waiting(Communicators made) {
  for (auto& communicator : made)
    communicator = std::make_unique<WaitingCommunicator>(std::move(communicator));
  return made;
}

// A communicator with a stream of the test's.
struct StreamRank {
  HostStream stream;
  Communicators communicators;
  Communicator& comm() { return *communicators[0]; }
  explicit StreamRank(Communicators made) : communicators(std::move(made)) {
    for (auto& c : communicators) c->AttachStream(static_cast<CUstream_st*>(&stream));
  }
};

}  // namespace ft::testing
