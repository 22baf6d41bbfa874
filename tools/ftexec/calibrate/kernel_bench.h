// Kernels of the device on memory of their own, with numbers in it, to be timed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"
#include "tools/ftexec/calibrate/session.h"

namespace ft {

// Where a kernel's tensors lie: `Take` hands out one place after the other and begins again at the end, so
// that with every call other bytes are read than before, as in a step, whose operands are mostly not in
// caches.
class KernelBench {
 public:
  // `bytes` of the device, filled with numbers around 0 that every float type has, none of them denormal.
  static absl::StatusOr<std::unique_ptr<KernelBench>> Create(const CalibrationSession& session,
                                                             uint64_t bytes);

  Tensor Take(DType dtype, const std::vector<int64_t>& shape);

  // Scratch, which devices want different amounts of; absent for none.
  Tensor Scratch(int64_t cpu_bytes, int64_t cuda_bytes);

  // The calls of a list are timed as one. Errors: the device's.
  absl::Status Add(const std::string& kernel, const KernelOperands& operands,
                   const KernelAttributes& attributes);
  // Seconds of one of the kernels that were added, which are forgotten. Errors: of CalibrationSession::Time.
  absl::StatusOr<Sample> Time(double seconds);

  const CalibrationSession& session() const { return session_; }
  Stream& stream() { return *stream_; }
  // Those that were added, as commands; valid until Time.
  const std::vector<Command>& commands() const { return commands_; }

 private:
  explicit KernelBench(const CalibrationSession& session) : session_(session) {}

  const CalibrationSession& session_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Stream> stream_;
  uint64_t next_ = 0;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<Command> commands_;
  CommandInfo info_;
};

}  // namespace ft
