// Where numbers that are not finite come from: follows them from instruction to instruction while a step is
// replayed (find_nan.h), and knows in the end which of them got into its loss or its gradients.
//
// An instruction has made NaN where it gives NaN and none of what it took was NaN, and infinity where nothing
// that it took was either. What reaches neither the loss nor a gradient is nobody's fault: a mask may be full
// of -infinity, and a maximum begin with it. NaN that was made of infinity has the infinity as its cause, and
// both are told. Integers (the exact sum of squares) carry what they were made of.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/executor/executor.h"
#include "runtime/executor/not_finite.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// The first place where a rank has met such numbers.
struct NanOrigin {
  enum class Kind {
    kMade,      // by an instruction, of what was finite or of its cause
    kReceived,  // by a reduction over ranks, of what was finite here
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
  // coefficient of clipping, with which updates begin, is made NaN. Errors: those of Executor::RunWatched.
  absl::Status Replay(int program, int64_t micro_step);

  absl::Status Before(int program, int instruction) override;
  absl::Status After(int program, int instruction) override;

  // After the last program of the step: what got into its loss or its gradients first, an index of
  // `origins`; -1: both are finite.
  int Reached() const;

  const std::vector<NanOrigin>& origins() const { return origins_; }

 private:
  enum NumberKind : size_t { kNan, kPositive, kNegative };
  static constexpr size_t kKinds = 3;
  // Of numbers of each kind; -1: there are none.
  using Origins = std::array<int, kKinds>;
  static constexpr Origins kNone = {-1, -1, -1};
  // Of what lies in a range of memory.
  struct Mark {
    const char *begin, *end;
    Origins origins;
  };

  static void Merge(Origins& all, const Origins& more);
  static int AnyOf(const Origins& origins);
  static bool Has(const NotFinite& numbers, size_t kind);

  absl::StatusOr<NotFinite> Look(const proto::Operand& operand, const Tensor& tensor);
  absl::Status Take(const proto::Operand& operand, Origins& origins);
  absl::Status AfterKernel(const proto::Instruction& instruction);
  absl::Status AfterTransfer(const proto::Instruction& instruction);
  absl::Status Discard(const proto::Instruction& clip);
  void Begin(int program, int instruction);

  int OriginOf(size_t kind) const;
  int Made(int output, const NotFinite& numbers, int64_t elements, NanOrigin::Kind kind, int cause);
  int State(const proto::Operand& operand, const Tensor& tensor, const NotFinite& numbers);
  std::string StateText(const proto::Operand& operand, const Tensor& tensor, int64_t first) const;

  Origins At(const Tensor& tensor) const;
  void Set(const char* begin, uint64_t bytes, const Origins& origins);

  const proto::Plan& plan_;
  Executor& executor_;
  NotFiniteScan scan_;
  std::vector<NanOrigin> origins_;
  std::vector<Mark> marks_;  // apart from each other
  // Of the program that runs: its buffers in the order in which they come to life, and the next of them.
  std::vector<uint32_t> births_;
  size_t next_birth_ = 0;
  int64_t micro_step_ = 0;
  int program_ = -1, instruction_ = -1;
  bool decided_ = false;  // the norm is known: what follows is of no interest
  // Of the instruction that runs: of all that it takes; of each operand; and of what lay where its results
  // come, which it may add to, and in its integers.
  Origins taken_ = kNone;
  std::vector<Origins> by_operand_;
  Origins carried_ = kNone;
};

}  // namespace ft
