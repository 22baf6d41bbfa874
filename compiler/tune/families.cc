#include "compiler/tune/families.h"

#include "compiler/remat/policy.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>

namespace ft::compiler {

namespace {

/// Parts that are all among those of another list, "optimizer" among "optimizer,parameters".
bool areAmong(llvm::StringRef parts, llvm::StringRef others) {
  llvm::SmallVector<llvm::StringRef> few, many;
  parts.split(few, ',');
  others.split(many, ',');
  return llvm::all_of(few, [&](llvm::StringRef part) { return llvm::is_contained(many, part); });
}

} // namespace

TuneLadder::TuneLadder(const TuneSpace &space) : space(space) {
  for (size_t remat = 0; remat < space.remats.size(); ++remat) {
    if (compiler::isBudget(space.remats[remat])) {
      // One that the user asks for is a choice like any.
      if (space.remats.size() > 1) {
        budgetRemat = remat;
        continue;
      }
    }
    for (size_t offload = 0; offload < space.offloads.size(); ++offload)
      all.push_back({remat, offload});
  }
}

bool TuneLadder::rematAdds(size_t less, size_t more) const {
  const std::string &a = space.remats[less], &b = space.remats[more];
  if (a == b || a == "none")
    return true;
  if (b == "none" || a == "full" || a.starts_with("segments") || b.starts_with("segments"))
    return false;
  if (b == "full")
    return true;
  constexpr llvm::StringLiteral kOps = "ops:";
  llvm::StringRef first = a, second = b;
  return first.consume_front(kOps) && second.consume_front(kOps) && areAmong(first, second);
}

bool TuneLadder::offloadAdds(size_t less, size_t more) const {
  const std::string &a = space.offloads[less], &b = space.offloads[more];
  return a == "none" || areAmong(a, b);
}

bool TuneLadder::adds(const TuneChoice &less, const TuneChoice &more) const {
  return less != more && rematAdds(less.remat, more.remat) && offloadAdds(less.offload, more.offload);
}

bool TuneLadder::addsActivations(size_t less, size_t more) const {
  constexpr llvm::StringLiteral kActivations = "activations";
  const std::string &a = space.offloads[less], &b = space.offloads[more];
  return b == kActivations ? a == "none" : b == a + "," + kActivations.str();
}

std::vector<TuneChoice> TuneLadder::lasts() const {
  std::vector<TuneChoice> choices;
  for (const TuneChoice &choice : llvm::reverse(all))
    if (choice.remat == all.back().remat)
      choices.push_back(choice);
  return choices;
}

bool TuneLadder::isDominated(const TuneFamily &family, const TuneChoice &choice) const {
  return llvm::any_of(family.fitting, [&](const TuneChoice &less) { return adds(less, choice); });
}

TunePoint TuneFamily::at(const TuneChoice &choice) const {
  TunePoint point = origin;
  point.remat = choice.remat;
  point.offload = choice.offload;
  return point;
}

std::vector<TuneFamily> tuneFamiliesOf(const TuneSpace &space) {
  std::vector<TuneFamily> families;
  for (size_t layout = 0; layout < space.layouts.size(); ++layout)
    for (size_t split = 0; split < space.splits.size(); ++split)
      for (size_t wrap = 0; wrap < space.wraps.size(); ++wrap) {
        const TunePoint origin{.layout = layout, .split = split, .wrap = wrap};
        if (isDistinct(space, origin))
          families.push_back({.origin = origin});
      }
  return families;
}

} // namespace ft::compiler
