#include "runtime/backends/cuda/register.h"

namespace ft::cuda {

Maker KernelTable::Find(std::string_view name) const {
  for (const auto& [known, maker] : makers_) {
    if (known == name) return maker;
  }
  return nullptr;
}

std::vector<std::string> KernelTable::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, maker] : makers_) names.push_back(name);
  return names;
}

void RegisterCudaKernels(KernelTable& table) {
  RegisterAccumulate(table);
  RegisterAttention(table);
  RegisterBinaryMapper(table);
  RegisterCast(table);
  RegisterCluster(table);
  RegisterDot(table);
  RegisterEmbedding(table);
  RegisterGradientNorm(table);
  RegisterIndex(table);
  RegisterLinearCrossEntropy(table);
  RegisterLossCount(table);
  RegisterLossScaling(table);
  RegisterMatmul(table);
  RegisterMatmulEpilogues(table);
  RegisterMove(table);
  RegisterMovement(table);
  RegisterRandom(table);
  RegisterRotaryTable(table);
  RegisterUpdate(table);
}

}  // namespace ft::cuda
