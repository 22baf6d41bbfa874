// What is gathered together, as --wrap says it.
#pragma once

#include "compiler/pipeline/options.h"

#include <string>

#include "runtime/base/setting_value.h"

namespace ft::compiler {

/// "transformer", "names:transformer.h.*,lm_head".
inline std::string wrapText(const CompileOptions &options) {
  return options.wrap == "names" ? "names:" + JoinWords(options.wrapNames, ",") : options.wrap;
}

} // namespace ft::compiler
