// What a model writes behind a text.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/executor/choose_token.h"
#include "runtime/executor/executor.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

// Runs the plan's sample_step, once for each token, over all that stands before it: the last tokens, as many
// as a sequence of the plan has. All ranks together, which all come to the same tokens. Parameters and the
// optimizer's state are only read, and inputs of the model are written, which every micro-step writes anew.
class TextContinuer {
 public:
  // The plan and the executor must outlive it. Errors: FailedPrecondition when the plan has no sample_step,
  // or not the ports that it needs.
  static absl::StatusOr<TextContinuer> Create(const proto::Plan& plan, Executor& executor);

  // Tokens are below this.
  int64_t vocabulary() const { return vocabulary_; }

  // `count` tokens behind `prompt`, which has one at least, all below vocabulary(); up to and with the first
  // `end` where there is one. With several ranks as many runs whatever is chosen, so that none waits for
  // another. `text`: its
  // number, for random numbers. Errors: those of collectives and of ChooseToken.
  absl::StatusOr<std::vector<int32_t>> Continue(absl::Span<const int32_t> prompt, int64_t count,
                                                const TokenChoice& choice, std::optional<int32_t> end,
                                                uint32_t text);

 private:
  struct Port {
    const proto::Input* input;
    void* data;
  };

  TextContinuer(const proto::Plan& plan, Executor& executor) : plan_(&plan), executor_(&executor) {}
  absl::Status FindPorts();
  void Fill(const Port& port, absl::Span<const int32_t> window) const;
  void ReadLogits();

  const proto::Plan* plan_;
  Executor* executor_;
  int program_ = 0;
  std::vector<Port> ports_;
  int32_t* position_ = nullptr;
  Tensor logits_;  // [batch, columns]
  int64_t vocabulary_ = 0;
  std::vector<float> row_;  // of the first sequence; all are the same
};

}  // namespace ft
