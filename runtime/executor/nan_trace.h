// Where numbers that are not finite come from: follows them from instruction to instruction while a step is
// replayed (find_nan.h), and knows in the end which of them got into its loss or its gradients.
//
// An instruction has made NaN where it gives NaN and none of what it took was NaN, and infinity where nothing
// that it took was NaN or that infinity. What reaches neither the loss nor a gradient is nobody's fault: a
// mask may be full of -infinity, and a maximum begin with it. NaN that was made of infinity has the infinity
// as its cause, and so has infinity that was made beside the other one; both are told. The exact sum of
// squares, of integers, carries what it was made of.
//
// A rank sees of a sum over ranks its own slice alone. So what goes into such a sum has got into the loss or
// a gradient, whatever comes out of it here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/nan_marks.h"
#include "runtime/executor/not_finite.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// The first place where a rank has met such numbers.
struct NanOrigin {
  enum class Kind {
    kMade,      // by an instruction, of what was finite or of its cause
    kReceived,  // by a sum over ranks, or of one, of what was finite here
    kState      // it was there before: a parameter, an input
  };
  Kind kind = Kind::kMade;
  int64_t micro_step = 0;
  int program = -1, instruction = -1, output = 0;  // kState: -1
  NotFinite numbers = {};                          // of the output
  int64_t elements = 0;                            // of the output
  std::string state = {};                          // kState: "parameter 'head.weight'"
  int cause = -1;                                  // another origin, found before
};

class NanTrace final : public InstructionWatcher {
 public:
  // All must outlive it.
  NanTrace(const proto::Plan& plan, Executor& executor);

  // Replays a program, the `micro_step`-th of the step. What it computes is not applied whatever it is: the
  // coefficient of clipping, with which updates begin, is made NaN. Errors: Internal for a program that
  // updates and has no such coefficient; those of Executor::RunWatched.
  absl::Status Replay(int program, int64_t micro_step);

  absl::Status Before(int program, int instruction) override;
  absl::Status After(int program, int instruction) override;

  // After the last program of the step: what got into its loss or its gradients first, an index of
  // `origins`; -1: nothing did.
  int Reached() const;
  // Whether its loss and gradient norm are finite, as they came out of the replay.
  bool EndsFinite() const;

  const std::vector<NanOrigin>& origins() const { return origins_; }

 private:
  using Origins = NanMarks::Origins;

  absl::StatusOr<NotFinite> Look(const proto::Operand& operand, const Tensor& tensor);
  // That a program which updates has a coefficient to discard; that it comes before, the plan's order says.
  absl::Status CheckDiscards(const proto::Program& program) const;
  absl::StatusOr<Origins> Take(const proto::Operand& operand);
  absl::Status AfterKernel(const proto::Instruction& instruction);
  absl::Status AfterTransfer(const proto::Instruction& instruction);
  absl::StatusOr<Origins> Arrived(const proto::Instruction& instruction, int output);
  absl::Status Discard(const proto::Instruction& clip);
  void Begin(int program, int instruction);

  int OriginOf(size_t kind) const;
  int CauseOf() const;
  int Made(int output, const NotFinite& numbers, int64_t elements, NanOrigin::Kind kind, int cause);
  int State(const proto::Operand& operand, const Tensor& tensor, const NotFinite& numbers);
  std::string StateText(const proto::Operand& operand, const Tensor& tensor, int64_t first) const;

  NanMarks::Known At(const Tensor& tensor) const { return marks_.At(tensor.data, tensor.bytes()); }
  void Set(const Tensor& tensor, const Origins& origins) { marks_.Set(tensor.data, tensor.bytes(), origins); }

  const proto::Plan& plan_;
  Executor& executor_;
  NotFiniteScan scan_;
  std::vector<NanOrigin> origins_;
  NanMarks marks_;
  int summed_ = -1;  // the first origin of what went into a sum over ranks
  // Of the program that runs: its buffers in the order in which they come to life, and the next of them.
  std::vector<uint32_t> births_;
  size_t next_birth_ = 0;
  int64_t micro_step_ = 0;
  int program_ = -1, instruction_ = -1;
  bool decided_ = false;  // the norm is known: what follows is of no interest
  // Of the instruction that runs: of all that it takes; of each operand; and of what lay where its results
  // come, which it may add to, and in its integers.
  Origins taken_ = NanMarks::kNone;
  std::vector<Origins> by_operand_;
  Origins carried_ = NanMarks::kNone;
};

}  // namespace ft
