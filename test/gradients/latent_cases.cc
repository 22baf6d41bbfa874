// The Free Transformer's latent variable.
#include <fmt/format.h>

#include "test/gradients/graph_text.h"

namespace mlir::ft::test {

std::vector<GraphCase> latentCases() {
  std::vector<GraphCase> cases;
  for (int64_t bits : {1, 3, 5}) {
    Dims logits = {2, 3, bits}, table = {int64_t{1} << bits, 7};
    cases.push_back({fmt::format("binary_mapper_{}_bits", bits),
                     {{"logits", logits}, {"table", table}},
                     fmt::format("  %r = ft.binary_mapper %logits, %tokens, %table : ({}, tensor<2x3xi32>, "
                                 "{}) -> tensor<2x3x7xf32>",
                                 tensorType(logits), tensorType(table)),
                     {2, 3, 7},
                     {2, 3},
                     table[0]});
    // From all rows above kappa to none.
    for (const char* kappa : {"0.0", "0.1", "20.0"})
      cases.push_back({fmt::format("bits_kl_{}_bits_kappa_{}", bits, kappa),
                       {{"logits", logits}},
                       fmt::format("  %kl = ft.bits_kl %logits kappa {} : ({}) -> tensor<f32>\n"
                                   "  %r = ft.scale %kl, 0.7 : tensor<f32>",
                                   kappa, tensorType(logits)),
                       {},
                       {1},
                       1,
                       {1},
                       1});
  }
  cases.push_back({"sampled_latent",
                   {{"logits", {2, 3, 4}}, {"table", {16, 5}}},
                   "  %rng = ft.input \"rng\" : tensor<3xi64>\n"
                   "  %index = ft.sample_bits %logits, %rng stream 1 : (tensor<2x3x4xf32>, tensor<3xi64>) -> "
                   "tensor<2x3xi32>\n"
                   "  %r = ft.binary_mapper %logits, %index, %table : (tensor<2x3x4xf32>, tensor<2x3xi32>, "
                   "tensor<16x5xf32>) -> tensor<2x3x5xf32>",
                   {2, 3, 5}});
  return cases;
}

}  // namespace mlir::ft::test
