#include "runtime/plan/adapter_parameters.h"

#include "runtime/base/lora_names.h"

namespace ft {

AdapterParameters::AdapterParameters(const proto::Lora& lora) {
  for (const std::string& module : lora.modules()) {
    names_.insert(module + kLoraA);
    names_.insert(module + kLoraB);
  }
  modules_.insert(lora.saved().begin(), lora.saved().end());
}

bool AdapterParameters::IsOfAdapter(std::string_view parameter) const { return names_.contains(parameter); }

bool AdapterParameters::Has(std::string_view parameter) const {
  return IsOfAdapter(parameter) || modules_.contains(parameter.substr(0, parameter.rfind('.')));
}

}  // namespace ft
