// Families of points: of each, what has been found of the choices that trade time for memory.
#pragma once

#include "compiler/tune/search.h"

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace ft::compiler {

/// Recomputation and offload, by number.
struct TuneChoice {
  size_t remat = 0, offload = 0;

  auto operator<=>(const TuneChoice &) const = default;
};

struct TuneFamily {
  TunePoint origin; // with the first of every choice
  std::map<TuneChoice, TuneTrial> tried = {};
  std::set<TuneChoice> fitting = {};

  TunePoint at(const TuneChoice &choice) const;
};

/// Which of two choices takes memory with less work.
class TuneLadder {
public:
  explicit TuneLadder(const TuneSpace &space);

  /// Whether `more` recomputes and offloads all that `less` does, and something else.
  bool adds(const TuneChoice &less, const TuneChoice &more) const;

  /// Whether offload `more` is `less` and activations.
  bool addsActivations(size_t less, size_t more) const;
  /// Whether something that fits needs less of both.
  bool isDominated(const TuneFamily &family, const TuneChoice &choice) const;

  /// All choices, but for budgets, which are settled by compiling whole models.
  const std::vector<TuneChoice> &choices() const { return all; }
  /// With which to find out whether anything fits: all recomputation with all offload, the least memory of a
  /// device, and then with less of it, which takes less of a host and may be compiled where more is refused.
  std::vector<TuneChoice> lasts() const;
  std::optional<size_t> budget() const { return budgetRemat; }
  bool isBudget(size_t remat) const { return budgetRemat == remat; }

private:
  bool rematAdds(size_t less, size_t more) const;
  bool offloadAdds(size_t less, size_t more) const;

  const TuneSpace &space;
  std::vector<TuneChoice> all;
  std::optional<size_t> budgetRemat;
};

/// Of the table, in its order.
std::vector<TuneFamily> tuneFamiliesOf(const TuneSpace &space);

} // namespace ft::compiler
