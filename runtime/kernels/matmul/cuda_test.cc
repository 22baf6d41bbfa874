// matmul where the library refuses what the kernel asks it for first.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/backends/cuda/register.h"
#include "runtime/base/cuda_workspace.h"
#include "test/doubles/cuda/reference_products.h"

namespace ft::cuda {
namespace {

// Refuses a bias, as cuBLASLt may for some shapes, or everything.
class Refusing final : public Products {
 public:
  explicit Refusing(bool everything) : everything_(everything) {}

  absl::StatusOr<std::shared_ptr<Product>> Create(const ProductSpec& spec, const ProductOperands& operands,
                                                  uint64_t workspace_bytes) override {
    if (everything_ || spec.bias) return absl::InvalidArgumentError("refused");
    return products_.Create(spec, operands, workspace_bytes);
  }
  absl::StatusOr<std::shared_ptr<Product>> Fuse(const ProductSpec&, const ProductOperands&, uint64_t,
                                                absl::FunctionRef<int(StreamHandle)>) override {
    return nullptr;
  }

 private:
  emulation::ReferenceProducts products_;
  const bool everything_;
};

// The kernel, by `products`.
KernelOr Make(const KernelOperands& operands, const KernelAttributes& attributes,
              const DeviceProperties& properties, Products& products) {
  KernelTable table;
  RegisterMatmul(table);
  std::vector<std::string> notes;
  return table.Find("matmul")({.operands = operands,
                               .attributes = attributes,
                               .properties = properties,
                               .products = products,
                               .attention = nullptr,
                               .attention_choice = AttentionChoice::kOwn,
                               .notes = notes});
}

class MatmulTest : public testing::Test {
 protected:
  static constexpr int64_t kRows = 3, kColumns = 5, kSummed = 4;

  // The bits of [3, 4] x [4, 5] + [5] in bf16.
  absl::StatusOr<std::vector<uint16_t>> Compute(Products& products) {
    alignas(256) uint16_t a[kRows * kSummed], b[kSummed * kColumns], bias[kColumns], result[kRows * kColumns];
    // Numbers between 1 and 2: the product has more digits than its type.
    for (int i = 0; i < kRows * kSummed; ++i) a[i] = static_cast<uint16_t>(0x3F80 + i * 37 % 128);
    for (int i = 0; i < kSummed * kColumns; ++i) b[i] = static_cast<uint16_t>(0x3F80 + i * 53 % 128);
    for (int i = 0; i < kColumns; ++i) bias[i] = static_cast<uint16_t>(0x3F80 + i * 29 % 128);
    const KernelOperands operands = {{{a, DType::kBF16, 2, {kRows, kSummed}},
                                      {b, DType::kBF16, 2, {kSummed, kColumns}},
                                      {bias, DType::kBF16, 1, {kColumns}},
                                      {}},
                                     {{result, DType::kBF16, 2, {kRows, kColumns}}},
                                     {workspace_.get(), DType::kU8, 1, {cuda_workspace::Matmul()}}};
    const KernelOr kernel = Make(operands, {}, {}, products);
    if (!kernel.ok()) return kernel.status();
    EXPECT_EQ(static_cast<CudaKernel&>(**kernel).Launch(nullptr), 0);
    return std::vector<uint16_t>(result, result + kRows * kColumns);
  }

 private:
  std::unique_ptr<char[]> workspace_{new char[cuda_workspace::Matmul()]};
};

// Rounded once all the same.
TEST_F(MatmulTest, AddsABiasThatTheLibraryRefuses) {
  emulation::ReferenceProducts taking;
  Refusing refusing(/*everything=*/false);
  const auto expected = Compute(taking), got = Compute(refusing);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(*got, *expected);
}

TEST_F(MatmulTest, SaysThatTheLibraryRefuses) {
  Refusing refusing(/*everything=*/true);
  EXPECT_EQ(Compute(refusing).status(), absl::InvalidArgumentError("refused"));
}

// What a GPU of a compute capability says of a product in fp8; empty: it is made.
std::string Refusal(int major, int minor, const std::string& scaling, int64_t columns = 64) {
  const int64_t rows = 7;
  std::vector<char> memory(static_cast<size_t>(1 << 20));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(memory.data());
  char* const place = memory.data() + (256 - begin % 256) % 256;
  const int64_t bytes = cuda_workspace::Float8Product(rows, 64, columns);
  const std::unique_ptr<char[]> workspace(new char[static_cast<size_t>(bytes)]);
  const KernelOperands operands = {{{place, DType::kBF16, 2, {rows, columns}},
                                    {place + (1 << 16), DType::kBF16, 2, {columns, 64}},
                                    {},
                                    {}},
                                   {{place + (2 << 16), DType::kBF16, 2, {rows, 64}}},
                                   {workspace.get(), DType::kU8, 1, {bytes}}};
  KernelAttributes attributes;
  attributes.Add("a_format", "e4m3");
  attributes.Add("b_format", "e4m3");
  attributes.Add("scaling", scaling);
  DeviceProperties properties;
  properties.major = major;
  properties.minor = minor;
  emulation::ReferenceProducts products;
  return std::string(Make(operands, attributes, properties, products).status().message());
}

TEST(Float8MatmulTest, RunsWhereTheLibraryHasIt) {
  for (const auto& [major, minor] : {std::pair(8, 9), {9, 0}, {10, 0}, {12, 0}})
    EXPECT_EQ(Refusal(major, minor, "tensorwise"), "");
  EXPECT_EQ(Refusal(9, 0, "blockwise"), "");
  EXPECT_EQ(
      Refusal(8, 0, "tensorwise"),
      "products in fp8 tensorwise run on GPUs of compute capability 8.9 and newer, not 8.0; compile with "
      "--fp8-recipe=none");
  EXPECT_EQ(Refusal(10, 0, "blockwise"),
            "products in fp8 blockwise run on GPUs of compute capability 9.0, not 10.0; compile with "
            "--fp8-recipe=tensorwise");
  EXPECT_EQ(Refusal(9, 0, "rowwise"), "scaling is 'rowwise'; expected tensorwise or blockwise");
  EXPECT_EQ(
      Refusal(9, 0, "tensorwise", 72),
      "a has rows of 72 elements and is rounded to 8 bits: expected multiples of 16, at a multiple of 16 "
      "bytes");
}

}  // namespace
}  // namespace ft::cuda
