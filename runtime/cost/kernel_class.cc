#include "runtime/cost/kernel_class.h"

namespace ft {
namespace {

// The first that fits counts.
constexpr struct {
  std::string_view begin;
  KernelClass is;
} kClasses[] = {
    {"matmul", KernelClass::kProduct},          {"dot", KernelClass::kProduct},
    {"grouped_dot", KernelClass::kProduct},     {"attention", KernelClass::kAttention},
    {"qkv_attention", KernelClass::kAttention}, {"linear_cross_entropy", KernelClass::kHead},
    {"embedding", KernelClass::kLookUp},        {"binary_mapper", KernelClass::kLookUp},
    {"update", KernelClass::kUpdate},           {"cluster", KernelClass::kGenerated},
    {"sum_squares", KernelClass::kReduction},
};

}  // namespace

KernelClass KernelClassOf(std::string_view kernel) {
  for (const auto& row : kClasses)
    if (kernel.starts_with(row.begin)) return row.is;
  return KernelClass::kMemory;
}

}  // namespace ft
