// Tries a communicator before a run depends on it: whether what it computes is right, and how long it takes.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"
#include "runtime/collective/communicator.h"
#include "runtime/device/device.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// A collective of one part; floats and integers are summed without a scale.
struct LinkCall {
  proto::Opcode opcode = proto::ALL_REDUCE;
  DType dtype = DType::kF32;
  uint64_t bytes = 0;  // of the whole buffer; rounded down to slices of whole elements, at least one
};

class LinkProbe {
 public:
  // Memory of the device for calls of up to `most_bytes`, twice, and a stream for the communicator, which
  // nobody else may use meanwhile. Both must outlive the probe. All ranks of the communicator have to make
  // the same calls in the same order, this one too. Errors: the device's, and those of RegisterBuffer.
  static absl::StatusOr<std::unique_ptr<LinkProbe>> Create(Device& device, Communicator& communicator,
                                                           uint64_t most_bytes);
  ~LinkProbe();

  // Bytes of the whole buffer that a call really moves.
  uint64_t WholeBytes(const LinkCall& call) const;

  // Runs the call on numbers whose result is known, small whole ones that every type has. DataLoss when a
  // result is wrong, naming an element; other errors are the communicator's, after which it is of no use.
  absl::Status CheckResult(const LinkCall& call);

  // The call as work for `stream`, to be run beside other things; both go with the probe.
  std::unique_ptr<HostTask> TaskOf(const LinkCall& call);
  Stream& stream() { return *stream_; }

  // Seconds of a call, the mean of `times` one after the other. Errors: the communicator's.
  absl::StatusOr<double> Measure(const LinkCall& call, int64_t times);

 private:
  LinkProbe(Device& device, Communicator& communicator) : device_(device), communicator_(communicator) {}
  absl::Status Run(const LinkCall& call, int64_t times);
  absl::Status Fill(const LinkCall& call);
  absl::Status Compare(const LinkCall& call);
  uint64_t SliceElements(const LinkCall& call) const;

  Device& device_;
  Communicator& communicator_;
  std::unique_ptr<Memory> source_;
  std::unique_ptr<Memory> result_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace ft
