// That comparisons of real shapes find what is wrong: on an emulated GPU whose results are damaged between
// the kernels and the comparison.
#include "test/conformance/real_shapes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "fmt/format.h"
#include "runtime/backends/cuda/device/open_cuda_device.h"
#include "runtime/base/round_float.h"
#include "test/conformance/device_bench.h"

namespace ft::conformance {
namespace {

// Passes on, but changes what is read of one tensor.
class DamagedBench final : public Bench {
 public:
  using Damage = std::function<void(uint16_t* elements, int64_t first, int64_t count)>;
  // `number` counts allocations of `bytes` bytes.
  DamagedBench(DeviceBench inner, uint64_t bytes, int number, Damage damage)
      : inner_(std::move(inner)), bytes_(bytes), number_(number), damage_(std::move(damage)) {}

  int reads = 0;  // of the beginning of the tensor: two for a scan of it and the comparison, if it is small

  DeviceClass device_class() const override { return inner_.device_class(); }
  bool Has(const std::string& op) const override { return inner_.Has(op); }
  absl::StatusOr<std::unique_ptr<Memory>> Allocate(uint64_t bytes, size_t alignment) override {
    auto memory = inner_.Allocate(bytes, alignment);
    if (memory.ok() && bytes == bytes_ && number_-- == 0)
      victim_ = static_cast<const std::byte*>((*memory)->data());
    return memory;
  }
  absl::Status Write(void* device_data, const void* host_data, uint64_t bytes) override {
    return inner_.Write(device_data, host_data, bytes);
  }
  absl::Status Read(void* host_data, const void* device_data, uint64_t bytes) override {
    const auto* from = static_cast<const std::byte*>(device_data);
    const absl::Status status = inner_.Read(host_data, device_data, bytes);
    if (victim_ != nullptr && from >= victim_ && from < victim_ + bytes_) {
      reads += from == victim_;
      damage_(static_cast<uint16_t*>(host_data), (from - victim_) / 2, static_cast<int64_t>(bytes) / 2);
    }
    return status;
  }
  absl::StatusOr<std::unique_ptr<Kernel>> Create(const std::string& op, const KernelOperands& operands,
                                                 const KernelAttributes& attributes) override {
    return inner_.Create(op, operands, attributes);
  }
  absl::Status Run(Kernel& kernel) override { return inner_.Run(kernel); }

 private:
  DeviceBench inner_;
  const uint64_t bytes_;
  int number_;
  const Damage damage_;
  const std::byte* victim_ = nullptr;
};

class RealShapesTest : public testing::Test {
 protected:
  RealShapesTest() : gpu_(cuda::OpenCudaDevice(0, {.platform = {.deterministic = true}}).value()) {}

  static RealShape Shape(std::string_view name) {
    for (RealShape& shape : RealShapes(ShapeScale::kSmall)) {
      if (shape.name == name) return shape;
    }
    ADD_FAILURE() << "there is no shape " << name;
    return {};
  }

  // What is wrong, all of it, when tensor `number` of those with so many elements of 16 bits is damaged.
  std::string Wrong(std::string_view name, uint64_t elements, int number,
                    const DamagedBench::Damage& damage) {
    DamagedBench bench(DeviceBench::Create(*gpu_.device, DeviceClass::kCuda).value(), 2 * elements, number,
                       damage);
    const absl::StatusOr<Findings> findings = Shape(name).run(bench, true);
    EXPECT_TRUE(findings.ok()) << findings.status();
    EXPECT_GT(bench.reads, 0) << "nothing was damaged";
    std::string wrong;
    for (const Finding& finding : *findings) wrong += finding.wrong + "\n";
    return wrong;
  }

  const cuda::OpenedDevice gpu_;
};

// Changes element `number` of a tensor, whatever part of it is read.
DamagedBench::Damage Element(int64_t number, std::function<uint16_t(uint16_t)> change) {
  return [=](uint16_t* elements, int64_t first, int64_t count) {
    if (number >= first && number < first + count)
      elements[number - first] = change(elements[number - first]);
  };
}

constexpr std::string_view kAttention = "attention_1x66x6_on_1x128", kLoss = "loss_200x72x517";
constexpr uint64_t kRows = 66 * 6 * 128;  // of q, dq, dout and out, in this order

TEST_F(RealShapesTest, AnElementThatIsNotFinite) {
  for (const int64_t number : {int64_t{0}, int64_t{66 * 6 * 128 - 1}}) {
    EXPECT_NE(Wrong(kAttention, kRows, 1, Element(number, [](uint16_t) { return uint16_t{0x7F80}; }))
                  .find(fmt::format("dq: element {} is not finite", number)),
              std::string::npos);
  }
}

TEST_F(RealShapesTest, OtherBitsASecondTime) {
  int read = 0;
  const auto damage = [&read](uint16_t* elements, int64_t, int64_t) {
    elements[0] ^= static_cast<uint16_t>(read++ == 0);
  };
  const std::string wrong = Wrong(kAttention, kRows, 3, damage);
  EXPECT_NE(wrong.find("out:  a second run gave other bits"), std::string::npos) << wrong;
}

// What a mask that is one position off, a scale or a head mistaken come to: a few per cent.
TEST_F(RealShapesTest, RowsThatAreAFewPerCentOff) {
  const auto scaled = [](uint16_t* elements, int64_t, int64_t count) {
    for (int64_t i = 0; i < count; ++i) elements[i] = RoundToBF16(BF16ToFloat(elements[i]) * 1.03f);
  };
  EXPECT_NE(Wrong(kAttention, kRows, 1, scaled).find("dq at sequence 0, head 0, position"),
            std::string::npos);
  EXPECT_NE(Wrong(kAttention, kRows, 3, scaled).find("out at sequence 0, head 0, position 0"),
            std::string::npos);
  EXPECT_NE(Wrong(kLoss, 200 * 72, 1, scaled).find("64 rows of dx at row 0: off by"), std::string::npos);
}

// One number of 100,000, by two units of its last place.
TEST_F(RealShapesTest, OneElementOfTheProduct) {
  const auto two_units = [](uint16_t bits) { return static_cast<uint16_t>(bits + 2); };
  const std::string wrong = Wrong(kLoss, 200 * 517, 0, Element(199 * 517 + 3, two_units));
  EXPECT_NE(wrong.find("64 rows of the product at row 199, element 3"), std::string::npos) << wrong;
}

TEST_F(RealShapesTest, OneColumnOfTheProduct) {
  const auto column = [](uint16_t* elements, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      if ((first + i) % 517 == 516) elements[i] = RoundToBF16(BF16ToFloat(elements[i]) + 0.5f);
    }
  };
  const std::string wrong = Wrong(kLoss, 200 * 517, 0, column);
  EXPECT_NE(wrong.find("64 columns of the product"), std::string::npos) << wrong;
  EXPECT_NE(wrong.find("loss at 200 rows"), std::string::npos) << wrong;
}

TEST(LazyTensorTest, IsNormalRoundedAndAFunctionOfTheIndex) {
  const LazyTensor tensor = LazyTensor::Normal({1000, 100}, 1, 0.5);
  double sum = 0, square = 0, within = 0;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double value = tensor.At(i);
    EXPECT_EQ(value, BF16ToFloat(RoundToBF16(static_cast<float>(value))));
    sum += value;
    square += value * value;
    within += std::abs(value) < 0.5;
  }
  EXPECT_NEAR(sum / 1e5, 0, 0.005);
  EXPECT_NEAR(square / 1e5, 0.25, 0.005);
  EXPECT_NEAR(within / 1e5, 0.68, 0.01);
  EXPECT_EQ(tensor.At(77), LazyTensor::Normal({7, 7, 7}, 1, 0.5).At(77));
  EXPECT_NE(tensor.At(77), LazyTensor::Normal({7, 7, 7}, 2, 0.5).At(77));
  std::map<double, int> counts;
  const LazyTensor ids = LazyTensor::Integers({9000}, 1, 3);
  for (int64_t i = 0; i < ids.elements(); ++i) ++counts[ids.At(i)];
  EXPECT_EQ(counts.size(), 3u);
  for (const auto& [id, count] : counts) EXPECT_NEAR(count, 3000, 200) << id;
}

TEST(LazyTensorTest, SamplesHaveBothEnds) {
  EXPECT_EQ(SampleOf(3, 64, 1), (std::vector<int64_t>{0, 1, 2}));
  const std::vector<int64_t> sample = SampleOf(50257, 64, 1);
  EXPECT_EQ(sample.size(), 64u);
  EXPECT_EQ(sample.front(), 0);
  EXPECT_EQ(sample.back(), 50256);
  EXPECT_TRUE(SampleOf(0, 64, 1).empty());
}

TEST(LazyTensorTest, EveryIndexIsInOnePart) {
  for (const int64_t count : {0, 1, 2, 3, 1000}) {
    std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
    InParallel(count, [&](int64_t begin, int64_t end, int64_t part) {
      EXPECT_LT(part, Parts(count));
      for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
    });
    for (const auto& times : seen) EXPECT_EQ(times, 1);
  }
}

}  // namespace
}  // namespace ft::conformance
