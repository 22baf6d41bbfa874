#include "models/registry.h"

#include "dialects/ft/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "models/base/user_error.h"
#include "llvm/ADT/StringExtras.h"

// One function of each file of families/ (CMakeLists.txt).
#define FT_FAMILY(family)                                                                                    \
  namespace ft::models::family {                                                                             \
  void addModels(std::vector<ModelSpec> &models);                                                            \
  }
#include "models/families.inc"
#undef FT_FAMILY

namespace ft::models {
namespace {

constexpr llvm::StringLiteral kDefaultPreset = "debug";

bool hasName(const Preset &preset, llvm::StringRef name) {
  return preset.name == name || preset.fullName == name || llvm::is_contained(preset.aliases, name);
}

const Preset *findPreset(const ModelSpec &spec, llvm::StringRef name) {
  auto found = llvm::find_if(spec.presets, [&](const Preset &preset) { return hasName(preset, name); });
  return found == spec.presets.end() ? nullptr : &*found;
}

std::string suggestion(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> candidates) {
  llvm::StringRef near = mlir::ft::nearestName(name, candidates);
  return near.empty() ? "" : ("; did you mean " + near + "?").str();
}

llvm::Error unknownModel(llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef> families, all;
  for (const ModelSpec &spec : allModels())
    families.push_back(spec.name);
  all = families;
  for (const ModelSpec &spec : allModels())
    for (const Preset &preset : spec.presets)
      all.push_back(preset.fullName);
  std::string hint = suggestion(name, all);
  if (hint.empty())
    hint = "; models are " + llvm::join(families, ", ");
  return userError("there is no model \"" + name + "\"" + hint);
}

llvm::Error unknownPreset(const ModelSpec &spec, llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef> names, all;
  for (const Preset &preset : spec.presets) {
    names.push_back(preset.name);
    all.push_back(preset.name);
    all.push_back(preset.fullName);
    all.append(preset.aliases.begin(), preset.aliases.end());
  }
  std::string hint = suggestion(name, all);
  if (hint.empty())
    hint = "; presets are " + llvm::join(names, ", ");
  return userError(spec.name + " has no preset \"" + name + "\"" + hint);
}

llvm::Error unknownOption(const ModelSpec &spec, const std::string &option) {
  llvm::SmallVector<llvm::StringRef> others;
  for (const ModelSpec &other : allModels())
    if (takesOption(other, option))
      others.push_back(other.name);
  return userError(spec.name + ": --" + option + " is an option of " + llvm::join(others, ", ") + " only");
}

// Family and preset that the user means.
llvm::Expected<std::pair<const ModelSpec *, const Preset *>> select(llvm::StringRef name,
                                                                    llvm::StringRef presetName) {
  for (const ModelSpec &spec : allModels()) {
    if (spec.name == name) {
      llvm::StringRef wanted = presetName.empty() ? llvm::StringRef(kDefaultPreset) : presetName;
      if (const Preset *preset = findPreset(spec, wanted))
        return std::pair(&spec, preset);
      return unknownPreset(spec, wanted);
    }
    for (const Preset &preset : spec.presets) {
      if (preset.fullName != name)
        continue;
      if (presetName.empty() || hasName(preset, presetName))
        return std::pair(&spec, &preset);
      return userError("\"" + name + "\" is a preset of " + spec.name +
                       " already; leave out --preset=" + presetName);
    }
  }
  return unknownModel(name);
}

} // namespace

const std::vector<ModelSpec> &allModels() {
  static const std::vector<ModelSpec> models = [] {
    std::vector<ModelSpec> all;
#define FT_FAMILY(family) family::addModels(all);
#include "models/families.inc"
#undef FT_FAMILY
    return all;
  }();
  return models;
}

llvm::Expected<ResolvedModel> resolveModel(const std::string &name, const std::string &preset,
                                           const Overrides &overrides) {
  auto selected = select(name, preset);
  if (!selected)
    return selected.takeError();
  auto [spec, chosen] = *selected;
  for (const auto &[option, value] : overrides)
    if (!takesOption(*spec, option))
      return unknownOption(*spec, option);
  ResolvedModel resolved{spec, chosen->name, chosen->config};
  if (std::string error = applyOverrides(*spec, overrides, resolved.config); !error.empty())
    return userError(spec->name + ": " + error);
  return resolved;
}

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> buildModel(mlir::MLIRContext &context,
                                                             const std::string &name,
                                                             const std::string &preset,
                                                             const Overrides &overrides) {
  auto resolved = resolveModel(name, preset, overrides);
  if (!resolved)
    return resolved.takeError();
  context.loadDialect<mlir::ft::FtDialect, mlir::func::FuncDialect>();
  return resolved->spec->build(context, {resolved->spec->name, resolved->preset}, resolved->config);
}

int64_t countParameters(mlir::ModuleOp module) {
  int64_t count = 0;
  for (auto parameter : module.getOps<mlir::ft::ParameterOp>())
    count += mlir::cast<mlir::RankedTensorType>(parameter.getType()).getNumElements();
  return count;
}

void printModel(mlir::ModuleOp module, llvm::raw_ostream &os) {
  module.print(os, mlir::OpPrintingFlags().printNameLocAsPrefix().useLocalScope());
  os << '\n';
}

void listModels(llvm::raw_ostream &os) {
  for (const ModelSpec &spec : allModels()) {
    os << spec.name << ": " << spec.summary << "\n";
    os << "  preset        hidden  layers  heads/kv     ffn   vocab  context\n";
    for (const Preset &preset : spec.presets) {
      const ModelConfig &c = preset.config;
      auto number = [&](int64_t value, unsigned width) {
        os << llvm::right_justify(value > 0 ? std::to_string(value) : "-", width);
      };
      os << "  " << llvm::left_justify(preset.name, 12);
      number(c.hidden_size, 8);
      number(c.num_layers, 8);
      os << llvm::right_justify(std::to_string(c.num_heads) + "/" + std::to_string(c.num_kv_heads), 10);
      number(c.intermediate_size, 8);
      number(c.vocab_size, 8);
      number(c.max_positions, 9);
      os << "\n";
    }
  }
}

} // namespace ft::models
