// What to do about a step whose loss or gradient norm is not finite, or that counts nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ft {

// The numbers of a step that decide whether it counts. All of them are the same on every rank.
struct StepNumbers {
  double loss = 0;
  double grad_norm = 0;
  std::optional<double> loss_scale = {};  // of this step; none without loss scaling
  bool counts_nothing = false;            // none of its targets counts: it has neither loss nor gradient
};

// Counts them. The plan itself skips the update, on every rank; here only the run's end is decided. A step
// that counts nothing is skipped and is no bad one.
//
// With loss scaling an infinite gradient under a finite loss is how a scale is found to be too large: such an
// overflow is no bad step as long as the scale can still fall, unless kMaxOverflows come in a row.
class BadSteps {
 public:
  static constexpr int64_t kMaxOverflows = 100;

  enum class Verdict {
    kApplied,
    kSkipped,  // the run goes on
    kEnd,      // skipped, and one too many
  };

  // The run ends at `max_in_a_row` (>= 1) bad steps; `min_scale` is the smallest scale that the plan goes
  // down to.
  BadSteps(int64_t max_in_a_row, double min_scale) : max_in_a_row_(max_in_a_row), min_scale_(min_scale) {}

  // Allocates nothing.
  Verdict Add(const StepNumbers& numbers);

  // Whether it is worth knowing where the step that was added last has gone wrong: it is the first bad one in
  // a row (in a run that goes on in such a row, the first of its own), or the overflow that ends the run.
  bool begins() const { return begins_; }

  // How many there were in a row until now, for a run that goes on where this one ends.
  int64_t bad_in_a_row() const { return bad_; }
  int64_t overflows_in_a_row() const { return overflows_; }
  void Restore(int64_t bad_in_a_row, int64_t overflows_in_a_row) {
    bad_ = bad_in_a_row;
    overflows_ = overflows_in_a_row;
    told_ = false;
  }

  // One line about the step that was added last, which was not applied.
  std::string Describe(int64_t step, int64_t total_steps, const StepNumbers& numbers) const;

 private:
  bool IsOverflow(const StepNumbers& numbers) const;

  const int64_t max_in_a_row_;
  const double min_scale_;
  int64_t bad_ = 0;        // in a row, overflows between them not counted
  int64_t overflows_ = 0;  // in a row
  bool begins_ = false;
  bool told_ = false;  // of a bad one in this row that it begins it
};

}  // namespace ft
