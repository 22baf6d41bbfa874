// The low-rank adapters of a model, as the compiler put them in, in an attribute of its module.
#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::ft {

inline constexpr llvm::StringLiteral kLoraAttr = "ft.lora";

struct Lora {
  int64_t rank = 0;
  double alpha = 0;
  double dropout = 0;
  bool rslora = false;              // the factor is alpha / sqrt(rank), else alpha / rank
  bool inputFirst = false;          // the adapted weights are [in, out]
  std::vector<std::string> modules; // with adapters
  std::vector<std::string> saved;   // trained whole
};

void setLora(ModuleOp module, const Lora &lora);
// Nothing when the module has none, or does not say it so.
std::optional<Lora> loraOf(ModuleOp module);

} // namespace mlir::ft
