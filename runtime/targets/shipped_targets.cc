#include "runtime/targets/shipped_targets.h"

#include <algorithm>

#include "runtime/targets/embedded_targets.h"

namespace ft {
namespace {

// Machines whose name says what joins their nodes go by the shorter name too.
constexpr std::string_view kNetwork = "-ib";

std::vector<Target> Load() {
  std::vector<Target> targets;
  for (int i = 0; i < kNumEmbeddedTargets; ++i) {
    Target target;
    if (!target.ParseFromArray(kEmbeddedTargets[i].bytes, static_cast<int>(kEmbeddedTargets[i].size)))
      continue;
    const std::string name = target.name();
    if (name.size() > kNetwork.size() && name.ends_with(kNetwork)) {
      Target shorter = target;
      shorter.set_name(name.substr(0, name.size() - kNetwork.size()));
      targets.push_back(std::move(shorter));
    }
    targets.push_back(std::move(target));
  }
  std::sort(targets.begin(), targets.end(),
            [](const Target& a, const Target& b) { return a.name() < b.name(); });
  return targets;
}

const std::vector<Target>& All() {
  static const auto* const kAll = new std::vector<Target>(Load());
  return *kAll;
}

}  // namespace

const Target* FindTarget(std::string_view name) {
  const auto found =
      std::find_if(All().begin(), All().end(), [&](const Target& target) { return target.name() == name; });
  return found == All().end() ? nullptr : &*found;
}

std::vector<std::string> TargetNames() {
  std::vector<std::string> names;
  for (const Target& target : All()) names.push_back(target.name());
  return names;
}

}  // namespace ft
