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
  RegisterAttention(table);
  RegisterCluster(table);
  RegisterDot(table);
  RegisterEmbedding(table);
  RegisterIndex(table);
  RegisterLatent(table);
  RegisterLoss(table);
  RegisterMatmul(table);
  RegisterMatmulGelu(table);
  RegisterMove(table);
  RegisterMovement(table);
  RegisterSteps(table);
  RegisterRandom(table);
  RegisterSums(table);
  RegisterUpdate(table);
}

}  // namespace ft::cuda
