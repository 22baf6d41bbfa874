// What a model with adapters trains.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "runtime/plan/plan.pb.h"

namespace ft {

// The parameters that are trained and saved where a model has adapters: those of the adapters, and of modules
// that are trained whole.
class AdapterParameters {
 public:
  explicit AdapterParameters(const proto::Lora& lora);
  bool IsOfAdapter(std::string_view parameter) const;
  bool Has(std::string_view parameter) const;

 private:
  std::set<std::string, std::less<>> names_;    // of parameters of adapters
  std::set<std::string, std::less<>> modules_;  // that are trained whole
};

}  // namespace ft
