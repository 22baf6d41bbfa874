// Which token comes next, by the logits of a position.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace ft {

struct TokenChoice {
  double temperature = 0;  // of the softmax that tokens are drawn from; 0: the likeliest is taken
  int64_t top_k = 0;       // of that many with the largest logits; 0: of all
  uint64_t seed = 0;
};

// The token at place `place` of text `text`: of equal logits the first. What is drawn depends on the seed,
// the text's number and the place alone. Allocates. Errors: InvalidArgument for a logit that is NaN, or none
// that is finite.
absl::StatusOr<int32_t> ChooseToken(absl::Span<const float> logits, const TokenChoice& choice, uint32_t text,
                                    int64_t place);

}  // namespace ft
