#include "compiler/shard/group_parameters.h"

#include "compiler/shard/names.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <map>
#include <tuple>

namespace ft::compiler {
namespace {

using namespace mlir;
using mlir::ft::ParameterOp;

constexpr llvm::StringLiteral kRoot = "root";
constexpr llvm::StringLiteral kSmall = "small";

uint64_t elementsOf(ParameterOp parameter) {
  return cast<RankedTensorType>(parameter.getType()).getNumElements();
}

StringRef layerOf(ParameterOp parameter) { return parameter.getLayer().value_or(kRoot); }

// The name of the unit of each layer, by policy.
using UnitNames = llvm::StringMap<std::string>;

// Layers in their order, each with its elements.
std::vector<std::pair<StringRef, uint64_t>> layersOf(ModuleOp module) {
  std::vector<std::pair<StringRef, uint64_t>> layers;
  llvm::StringMap<size_t> index;
  for (ParameterOp parameter : module.getOps<ParameterOp>()) {
    auto [it, isNew] = index.try_emplace(layerOf(parameter), layers.size());
    if (isNew)
      layers.push_back({layerOf(parameter), 0});
    layers[it->second].second += elementsOf(parameter);
  }
  return layers;
}

// "a" alone, "a..b" for the layers from a to b.
std::string spanName(StringRef first, StringRef last) {
  return first == last ? first.str() : (first + ".." + last).str();
}

UnitNames joinBySize(ModuleOp module, uint64_t minimum) {
  auto layers = layersOf(module);
  UnitNames names;
  for (size_t begin = 0, end = 0; begin < layers.size(); begin = end) {
    uint64_t elements = 0;
    while (end < layers.size() && (end == begin || elements < minimum))
      elements += layers[end++].second;
    std::string name = spanName(layers[begin].first, layers[end - 1].first);
    for (size_t i = begin; i < end; ++i)
      names[layers[i].first] = name;
  }
  return names;
}

FailureOr<UnitNames> nameUnits(ModuleOp module, const WrapPolicy &policy) {
  if (policy.wrap == "size")
    return joinBySize(module, policy.minNumParams);
  UnitNames names;
  NamePatterns patterns(policy.names);
  for (const auto &[layer, elements] : layersOf(module)) {
    if (policy.wrap == "transformer")
      names[layer] = layer.str();
    else if (policy.wrap == "none")
      names[layer] = kRoot.str();
    else if (policy.wrap == "names")
      names[layer] = patterns.matches(layer) ? layer.str() : kRoot.str();
    else
      return module.emitError() << "unknown wrap policy '" << policy.wrap
                                << "'; one of transformer, size, names, none";
  }
  if (const std::string *unused = patterns.firstUnmatched(); unused && policy.wrap == "names")
    return module.emitError() << "no layer matches '" << *unused << "', which the wrap policy names";
  return names;
}

// What a layer has beside parameters of a rule of their own, such as its norms, is often so small that a
// gather of it would only hold up those of the others.
class Leftovers {
public:
  explicit Leftovers(ModuleOp module) {
    for (ParameterOp parameter : module.getOps<ParameterOp>())
      if (parameter.getRule())
        ruled.insert(layerOf(parameter));
  }

  bool contains(ParameterOp parameter) const {
    return !parameter.getRule() && !parameter.getFrozen() && ruled.contains(layerOf(parameter)) &&
           elementsOf(parameter) < kFew;
  }

private:
  static constexpr uint64_t kFew = 100000; // DeepSpeed's stage3_param_persistence_threshold
  llvm::StringSet<> ruled;
};

} // namespace

FailureOr<std::vector<ParameterGroup>> groupParameters(ModuleOp module, const WrapPolicy &policy) {
  FailureOr<UnitNames> names = nameUnits(module, policy);
  if (failed(names))
    return failure();
  // Names alone do not tell groups apart: a layer may be called "small", or end in ".frozen".
  std::map<std::tuple<std::string, bool, bool, std::string>, size_t> index;
  std::vector<ParameterGroup> groups;
  Leftovers leftovers(module);
  for (ParameterOp parameter : module.getOps<ParameterOp>()) {
    bool small = elementsOf(parameter) < policy.persistenceThreshold || leftovers.contains(parameter);
    std::string name = small ? kSmall.str() : (*names)[layerOf(parameter)];
    std::string rule = parameter.getFrozen() ? "" : parameter.getRule().value_or("").str();
    if (parameter.getFrozen())
      name += ".frozen";
    else if (!rule.empty())
      name += "." + rule;
    auto [it, isNew] = index.try_emplace({name, parameter.getFrozen(), small, rule}, groups.size());
    if (isNew)
      groups.push_back({name, parameter.getFrozen(), small, rule, {}});
    groups[it->second].parameters.push_back(parameter);
  }
  if (groups.empty())
    return module.emitError("the model has no parameters");
  return groups;
}

} // namespace ft::compiler
