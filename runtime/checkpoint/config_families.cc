#include "runtime/checkpoint/config_families.h"

// One function of each file of families/ (CMakeLists.txt).
#define FT_FAMILY(family)                                    \
  namespace ft::config_families::family {                    \
  void AddFamilies(std::vector<ft::ConfigFamily>& families); \
  }
#include "runtime/checkpoint/families.inc"
#undef FT_FAMILY

namespace ft {

absl::Span<const ConfigFamily> ConfigFamilies() {
  static const std::vector<ConfigFamily> families = [] {
    std::vector<ConfigFamily> all;
#define FT_FAMILY(family) config_families::family::AddFamilies(all);
#include "runtime/checkpoint/families.inc"
#undef FT_FAMILY
    return all;
  }();
  return families;
}

const ConfigFamily* FindConfigFamily(std::string_view model_type) {
  for (const ConfigFamily& family : ConfigFamilies()) {
    if (family.model_type == model_type) return &family;
  }
  return nullptr;
}

std::string NameInModules(std::string_view model_type, std::string name) {
  const ConfigFamily* family = FindConfigFamily(model_type);
  if (family == nullptr) return name;
  for (const auto& [in_file, in_modules] : family->module_names) {
    const size_t at = name.find(in_file);
    if (at != std::string::npos) name.replace(at, in_file.size(), in_modules);
  }
  return name;
}

}  // namespace ft
