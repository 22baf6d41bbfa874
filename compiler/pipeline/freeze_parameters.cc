#include "compiler/pipeline/freeze_parameters.h"

#include "compiler/shard/names.h"
#include "dialects/ft/dialect.h"

namespace ft::compiler {

using namespace mlir;
using mlir::ft::ParameterOp;

LogicalResult freezeParameters(ModuleOp module, ArrayRef<std::string> patterns) {
  NamePatterns frozen(patterns);
  for (ParameterOp parameter : module.getOps<ParameterOp>()) {
    bool matches = frozen.matches(parameter.getSymName());
    if (auto aliases = parameter.getAliases())
      for (auto alias : aliases->getAsRange<StringAttr>())
        matches |= frozen.matches(alias.getValue());
    if (matches)
      parameter.setFrozen(true);
  }
  if (const std::string *unused = frozen.firstUnmatched())
    return module.emitError() << "no parameter matches '" << *unused << "', which is to be frozen";
  return success();
}

void thawParameters(ModuleOp module) {
  auto parameters = module.getOps<ParameterOp>();
  if (llvm::all_of(parameters, [](ParameterOp parameter) { return parameter.getFrozen(); }))
    for (ParameterOp parameter : parameters)
      parameter.setFrozen(false);
}

} // namespace ft::compiler
