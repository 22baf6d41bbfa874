// Generated kernels for GPUs, on the host: the cases of compiler/codegen, the order of sums, and what PTX
// says.
#include <cmath>
#include <regex>

#include "compiler/codegen/cluster_body.h"
#include "compiler/codegen/testing/body_cases.h"
#include "compiler/codegen/testing/elementwise_cases.h"
#include "compiler/codegen/testing/guarded_run.h"
#include "test/codegen/emulated_kernel.h"
#include "test/codegen/host_intrinsics.h"

namespace ft::compiler::testing {
namespace {

using namespace mlir;

// Parts of a warp, warps and blocks for a row; rows that are not a multiple of those side by side in a block;
// blocks of rows; loops over a row, with packs that are whole, aligned to less, and not aligned.
constexpr Extents kGpuShapes[] = {{300, 24},   {37, 83},    {37, 1030}, {70, 1096}, {35, 4096}, {3, 16380},
                                  {19, 16400}, {18, 16394}, {2, 32776}, {2, 32770}, {1, 2},     {257, 9}};

constexpr const char* kSumOfColumns = R"(
func.func @f(%x: tensor<$Mxf32>) -> tensor<$Cxf32> {
  %s = ft.reduce "sum" %x over [0] : tensor<$Mxf32> -> tensor<$Cxf32>
  return %s : tensor<$Cxf32>
})";

// A gradient of elements and of the bias before them.
constexpr const char* kSquareGrad = R"(
func.func @f(%dy: tensor<$Mxf32>, %x: tensor<$Mxf32>) -> (tensor<$Mxf32>, tensor<$Cxf32>) {
  %p = ft.mul %dy, %x : tensor<$Mxf32>, tensor<$Mxf32>
  %dx = ft.add %p, %p : tensor<$Mxf32>, tensor<$Mxf32>
  %db = ft.reduce "sum" %dx over [0] : tensor<$Mxf32> -> tensor<$Cxf32>
  return %dx, %db : tensor<$Mxf32>, tensor<$Cxf32>
})";

// Over columns and over rows.
constexpr const char* kBothSums = R"(
func.func @f(%x: tensor<$Mx$T>, %y: tensor<$Mx$T>) -> (tensor<$Rxf32>, tensor<$Cxf32>) {
  %s = ft.reduce "sum" %x over [1] : tensor<$Mx$T> -> tensor<$Rxf32>
  %p = ft.mul %x, %y : tensor<$Mx$T>, tensor<$Mx$T> -> tensor<$Mxf32>
  %c = ft.reduce "sum" %p over [0] : tensor<$Mxf32> -> tensor<$Cxf32>
  return %s, %c : tensor<$Rxf32>, tensor<$Cxf32>
})";

// A norm of rows, the halves of which are turned, as heads before attention, and sums over rows of what that
// gives.
constexpr const char* kTurnedNorm = R"(
func.func @f(%x: tensor<$Mx$T>, %gain: tensor<$Cx$T>, %table: tensor<$Rx$Hx$T>) -> (tensor<$Mx$T>, tensor<$Cxf32>, tensor<$Rx$T>) {
  %square = ft.mul %x, %x : tensor<$Mx$T>, tensor<$Mx$T>
  %sum = ft.reduce "sum" %square over [1] : tensor<$Mx$T> -> tensor<$Rxf32>
  %root = ft.rsqrt %sum : tensor<$Rxf32>
  %column = ft.reshape %root : tensor<$Rxf32> -> tensor<$Rx1xf32>
  %each = ft.broadcast %column : tensor<$Rx1xf32> -> tensor<$Mxf32>
  %scaled = ft.mul %x, %each : tensor<$Mx$T>, tensor<$Mxf32> -> tensor<$Mx$T>
  %normed = ft.mul %scaled, %gain : tensor<$Mx$T>, tensor<$Cx$T>
  %low = ft.slice %normed at [0, 0] : tensor<$Mx$T> -> tensor<$Rx$Hx$T>
  %high = ft.slice %normed at [0, $H] : tensor<$Mx$T> -> tensor<$Rx$Hx$T>
  %a = ft.mul %low, %table : tensor<$Rx$Hx$T>, tensor<$Rx$Hx$T>
  %b = ft.sub %high, %low : tensor<$Rx$Hx$T>, tensor<$Rx$Hx$T>
  %turned = ft.concat %a, %b : tensor<$Rx$Hx$T>, tensor<$Rx$Hx$T> -> tensor<$Mx$T>
  %sums = ft.reduce "sum" %turned over [0] : tensor<$Mx$T> -> tensor<$Cxf32>
  %most = ft.reduce "max" %turned over [1] : tensor<$Mx$T> -> tensor<$Rx$T>
  return %turned, %sums, %most : tensor<$Mx$T>, tensor<$Cxf32>, tensor<$Rx$T>
})";

class GpuCodeTest : public CodeTest {
 protected:
  // Ops one by one, but for those that only move elements.
  std::vector<HostTensor> runApart(func::FuncOp body, const std::vector<HostTensor>& inputs) {
    return evaluate(body, inputs, [&](Operation* op, const std::vector<HostTensor>& operands) {
      if (isMoved(op)) return evaluateOp(op, operands);
      OwningOpRef<ModuleOp> module = alone(op);
      return runEmulated(*module->getOps<func::FuncOp>().begin(), operands)[0];
    });
  }

  void check(const BodyCase& bodyCase, Extents extents, const std::string& element) {
    SCOPED_TRACE(std::string(bodyCase.name) + " " + std::to_string(extents.rows) + "x" +
                 std::to_string(extents.columns) + " of " + element);
    func::FuncOp body = parse(bodyCase.text, extents, element);
    ASSERT_TRUE(body);
    std::vector<HostTensor> inputs = inputsOf(body, bodyCase);
    std::vector<HostTensor> expected = evaluate(body, inputs), results = runEmulated(body, inputs);
    ASSERT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      SCOPED_TRACE("result " + std::to_string(i));
      compare(results[i], expected[i], bodyCase);
    }
  }
};

TEST_F(GpuCodeTest, EveryElementwiseRowInEveryTypeAndShape) {
  eachElementwiseCase(context, kShapes, [&](ElementwiseCase& test) {
    std::vector<HostTensor> results = runEmulated(test.body(), test.inputs);
    ASSERT_EQ(results.size(), 1u);
    compare(test, results[0], /*fma=*/true);
    if (!canRun(X86Level::V3)) return;
    MappedKernel kernel(std::move(*generateKernel(test.body(), X86Level::V3)));
    HostTensor onCpu(results[0].type);
    onCpu.fromMemory(runOn(kernel, test.inputs, {onCpu.type}, kernel.interface().rows)[0].data());
    EXPECT_TRUE(sameBits(results[0], onCpu)) << "a CPU computes other bits";
  });
}

TEST_F(GpuCodeTest, EveryBodyInEveryShapeAndType) {
  for (auto [b, body] : llvm::enumerate(kBodies)) {
    for (auto [s, extents] : llvm::enumerate(kShapes)) check(body, extents, elementOf(b, s));
    for (auto [s, extents] : llvm::enumerate(kGpuShapes)) check(body, extents, elementOf(b, s));
  }
}

TEST_F(GpuCodeTest, ClustersOfOneOpGiveTheSameBits) {
  constexpr Extents kThree[] = {{37, 83}, {18, 1096}, {17, 16394}};
  for (auto [b, bodyCase] : llvm::enumerate(kBodies))
    for (auto [s, extents] : llvm::enumerate(kThree)) {
      SCOPED_TRACE(std::string(bodyCase.name) + " of " + elementOf(b, s));
      func::FuncOp body = parse(bodyCase.text, extents, elementOf(b, s));
      std::vector<HostTensor> inputs = inputsOf(body, bodyCase);
      std::vector<HostTensor> apart = runApart(body, inputs), together = runEmulated(body, inputs);
      ASSERT_EQ(together.size(), apart.size());
      for (size_t i = 0; i < apart.size(); ++i)
        EXPECT_TRUE(sameBits(together[i], apart[i])) << "result " << i;
    }
}

TEST_F(GpuCodeTest, PiecesOfARowGiveTheSameBits) {
  for (Extents extents : {Extents{37, 128}, Extents{300, 256}})
    for (const char* element : {"f32", "bf16"}) {
      SCOPED_TRACE(std::to_string(extents.columns) + " of " + element);
      const std::string half = std::to_string(extents.columns / 2);
      func::FuncOp body = parse(std::regex_replace(kTurnedNorm, std::regex("\\$H"), half), extents, element);
      FailureOr<ClusterBody> cluster = clusterBodyOf(body);
      ASSERT_TRUE(succeeded(cluster));
      EXPECT_EQ(cluster->columns, kClusterLanes);
      std::vector<HostTensor> inputs;
      for (Type type : body.getArgumentTypes()) {
        inputs.emplace_back(cast<RankedTensorType>(type));
        inputs.back().values = numbers(inputs.back().values.size(), inputs.size());
        for (double& value : inputs.back().values)
          value = rounded(value, inputs.back().type.getElementType());
      }
      std::vector<HostTensor> apart = runApart(body, inputs), together = runEmulated(body, inputs, true);
      ASSERT_EQ(together.size(), 3u);
      for (size_t i = 0; i < apart.size(); ++i)
        EXPECT_TRUE(sameBits(together[i], apart[i])) << "result " << i;
    }
}

// Of the same numbers, which all types have.
TEST_F(GpuCodeTest, TheOrderOfSumsDependsOnTheShapeAlone) {
  for (Extents extents : {Extents{300, 24}, Extents{37, 1030}, Extents{70, 4096}, Extents{19, 16400}}) {
    std::vector<HostTensor> first;
    for (const char* element : {"f32", "bf16", "f16"}) {
      func::FuncOp body = parse(kBothSums, extents, element);
      std::vector<HostTensor> inputs;
      for (int i = 0; i < 2; ++i) {
        inputs.emplace_back(cast<RankedTensorType>(body.getArgumentTypes()[i]));
        inputs[i].values = numbers(inputs[i].values.size(), i + 5);
        for (double& value : inputs[i].values)
          value = rounded(value, Float16Type::get(&context)),
          value = rounded(value, BFloat16Type::get(&context));
      }
      std::vector<HostTensor> results = runEmulated(body, inputs);
      ASSERT_EQ(results.size(), 2u);
      if (first.empty()) first = results;
      EXPECT_TRUE(sameBits(results[0], first[0]) && sameBits(results[1], first[1])) << element;
    }
  }
}

float treeSum(std::vector<float> parts) {
  for (size_t half = parts.size() / 2; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i) parts[i] += parts[i + half];
  return parts[0];
}

// Of threads of a block and of blocks, in shared memory and in partial results.
TEST_F(GpuCodeTest, NoThreadsRace) {
  std::vector<BodyCase> bodies(std::begin(kBodies), std::end(kBodies));
  bodies.push_back({"sums", kBothSums, 0, 0});  // one level of reductions
  for (const BodyCase& bodyCase : bodies)
    for (Extents extents : {Extents{70, 24}, Extents{37, 770}, Extents{35, 1096}, Extents{18, 16394}})
      for (const char* element : {"f32", "bf16"}) {
        SCOPED_TRACE(std::string(bodyCase.name) + " " + std::to_string(extents.columns) + " of " + element);
        func::FuncOp body = parse(bodyCase.text, extents, element);
        EXPECT_FALSE(runEmulated(body, inputsOf(body, bodyCase), /*watched=*/true).empty());
      }
}

// The order that compiler/codegen/ptx/thread_plan.h promises, written out: lanes i mod 8 T, the lanes of a
// thread, its warp, the warps of the row.
float rowSum(const float* row, int64_t columns, int64_t threads) {
  std::vector<float> lanes(8 * threads, 0.0f), ofThreads, ofWarps;
  for (int64_t i = 0; i < columns; ++i) lanes[i % (8 * threads)] += row[i];
  for (int64_t i = 0; i < threads; ++i)
    ofThreads.push_back(treeSum(std::vector(lanes.begin() + 8 * i, lanes.begin() + 8 * i + 8)));
  if (threads <= 32) return treeSum(ofThreads);
  for (int64_t i = 0; i < threads; i += 32)
    ofWarps.push_back(treeSum(std::vector(ofThreads.begin() + i, ofThreads.begin() + i + 32)));
  while ((ofWarps.size() & (ofWarps.size() - 1)) != 0) ofWarps.push_back(0);
  return treeSum(ofWarps);
}

TEST_F(GpuCodeTest, RowsAreSummedInTheOrderThatIsPromised) {
  const std::pair<int64_t, int64_t> columnsAndThreads[] = {
      {1, 1},      {17, 4},     {83, 16},    {768, 32},    {1030, 96},    {3500, 224},
      {4096, 256}, {5000, 320}, {9000, 512}, {16384, 512}, {16394, 1024}, {50257, 1024}};
  for (auto [columns, threads] : columnsAndThreads) {
    func::FuncOp body = parse(R"(
func.func @f(%x: tensor<$Mxf32>) -> tensor<$Rxf32> {
  %s = ft.reduce "sum" %x over [1] : tensor<$Mxf32> -> tensor<$Rxf32>
  return %s : tensor<$Rxf32>
})",
                              {3, columns});
    HostTensor x(cast<RankedTensorType>(body.getArgumentTypes()[0]));
    x.values = numbers(x.values.size(), 3);
    std::vector<float> floats(x.values.begin(), x.values.end());
    for (size_t i = 0; i < floats.size(); ++i) x.values[i] = floats[i];
    std::vector<HostTensor> results = runEmulated(body, {x});
    for (int64_t row = 0; row < 3; ++row)
      EXPECT_EQ(results[0].values[row], rowSum(&floats[row * columns], columns, threads)) << columns;
  }
}

// Of 0 and -0 either is the larger: all threads must have chosen the same.
TEST_F(GpuCodeTest, ThreadsOfARowAgreeOnMaxima) {
  for (int64_t columns : {7, 83, 768, 1030, 4096, 16394}) {
    func::FuncOp body = parse(R"(
func.func @f(%x: tensor<$Mxf32>) -> (tensor<$Rxf32>, tensor<$Mxf32>) {
  %m = ft.reduce "max" %x over [1] : tensor<$Mxf32> -> tensor<$Rxf32>
  %r = ft.reshape %m : tensor<$Rxf32> -> tensor<$Rx1xf32>
  %b = ft.broadcast %r : tensor<$Rx1xf32> -> tensor<$Mxf32>
  %y = ft.copy %b : tensor<$Mxf32> -> tensor<$Mxf32>
  return %m, %y : tensor<$Rxf32>, tensor<$Mxf32>
})",
                              {3, columns});
    HostTensor x(cast<RankedTensorType>(body.getArgumentTypes()[0]));
    x.values = numbers(x.values.size(), 9);
    for (double& value : x.values) value = std::copysign(0.0, value);
    std::vector<HostTensor> results = runEmulated(body, {x});
    ASSERT_EQ(results.size(), 2u);
    for (size_t i = 0; i < results[1].values.size(); ++i)
      ASSERT_EQ(std::signbit(results[1].values[i]), std::signbit(results[0].values[i / columns])) << columns;
  }
}

// A block's groups of threads take its rows in turns and are joined by a tree; blocks are lanes of a warp's.
float columnSum(const std::vector<float>& x, int64_t column, Extents extents, int64_t groups,
                int64_t blockRows) {
  std::vector<float> lanes(32, 0.0f);
  for (int64_t first = 0, block = 0; first < extents.rows; first += blockRows, ++block) {
    std::vector<float> ofGroups(groups, 0.0f);
    for (int64_t row = first; row < std::min(first + blockRows, extents.rows); ++row)
      ofGroups[(row - first) % groups] += x[row * extents.columns + column];
    lanes[block % 32] += treeSum(ofGroups);
  }
  return treeSum(lanes);
}

TEST_F(GpuCodeTest, ColumnsAreSummedInTheOrderThatIsPromised) {
  struct Case {
    Extents extents;
    int64_t groups, blockRows;
  };
  for (const Case& one : {Case{{1000, 9}, 128, 128}, Case{{1000, 83}, 16, 16}, Case{{700, 1024}, 8, 16},
                          Case{{300, 1030}, 1, 16}, Case{{35, 16394}, 1, 16}, Case{{70, 20003}, 1, 16},
                          Case{{9000, 83}, 16, 32}, Case{{1100000, 3}, 256, 3072}}) {
    func::FuncOp body = parse(kSumOfColumns, one.extents);
    HostTensor x(cast<RankedTensorType>(body.getArgumentTypes()[0]));
    x.values = numbers(x.values.size(), 3);
    std::vector<float> floats(x.values.begin(), x.values.end());
    for (size_t i = 0; i < floats.size(); ++i) x.values[i] = floats[i];
    std::vector<HostTensor> results = runEmulated(body, {x});
    ASSERT_EQ(results.size(), 1u);
    for (int64_t column = 0; column < one.extents.columns; ++column)
      ASSERT_EQ(results[0].values[column], columnSum(floats, column, one.extents, one.groups, one.blockRows))
          << one.extents.columns << ", column " << column;
  }
}

TEST_F(GpuCodeTest, LaunchesFollowFromTheShape) {
  FailureOr<PtxInterface> interface = ptxInterfaceOf(parse(kRmsNormGrad, {4096, 768}));
  ASSERT_TRUE(succeeded(interface));
  EXPECT_EQ(interface->kernel, (GpuLaunch{256, 256, 12288}));
  EXPECT_EQ(interface->combine, (GpuLaunch{12, 256, 0}));
  EXPECT_EQ(interface->partialBytes, 256 * 768 * 4);
  interface = ptxInterfaceOf(parse(kSumOfColumns, {64, 786432}));  // a segment of 512 columns for each block
  EXPECT_EQ(interface->kernel, (GpuLaunch{1536 * 4, 64, 0}));
  EXPECT_EQ(interface->combine, (GpuLaunch{98304 / 8, 256, 0}));
  EXPECT_EQ(interface->partialBytes, 4 * 786432 * 4);
  interface = ptxInterfaceOf(parse(kSoftmax, {10, 4096}));
  EXPECT_EQ(interface->kernel, (GpuLaunch{10, 256, 2 * 8 * 4}));
  EXPECT_EQ(interface->combine, (GpuLaunch{}));
  interface = ptxInterfaceOf(parse(kGelu, {5, 771}));
  EXPECT_EQ(interface->kernel, (GpuLaunch{2, 256, 0}));
}

// adamw with its results in place of parameters and moments; a sum over rows of what another result
// overwrites.
TEST_F(GpuCodeTest, ResultsMayTakeThePlaceOfArguments) {
  const std::pair<const char*, std::vector<int>> cases[] = {
      {kAdamW, {0, 2, 3}}, {kRmsNormGrad, {1}}, {kSoftmax, {0}}, {kBounded, {0}}, {kSquareGrad, {0}}};
  for (auto [text, places] : cases)
    for (Extents extents : {Extents{37, 83}, Extents{18, 1096}, Extents{3, 16394}, Extents{2, 32770}}) {
      func::FuncOp body = parse(text, extents);
      std::vector<HostTensor> inputs;
      std::vector<std::string> memory;
      for (auto [i, type] : llvm::enumerate(body.getArgumentTypes())) {
        inputs.emplace_back(cast<RankedTensorType>(type));
        inputs.back().values = numbers(inputs.back().values.size(), i + 1, true);
        memory.push_back(inputs.back().toMemory());
      }
      std::vector<HostTensor> expected = runEmulated(body, inputs);
      auto kernel = EmulatedKernel::of(body);
      ASSERT_TRUE(static_cast<bool>(kernel));
      for (const HostTensor& result : expected) memory.push_back(result.toMemory());
      for (int64_t bytes : kernel->partials()) memory.emplace_back(bytes, 1);
      std::vector<void*> operands;
      for (std::string& bytes : memory) operands.push_back(bytes.data());
      for (size_t i = 0; i < places.size(); ++i) operands[inputs.size() + i] = operands[places[i]];
      ASSERT_EQ(kernel->call(operands.data(), false), "");
      for (size_t i = 0; i < places.size(); ++i)
        EXPECT_EQ(memory[places[i]], expected[i].toMemory()) << "result " << i;
    }
}

// Every byte once, but for rows that a thread walks over in a loop: those are read again for each level of
// reductions, or what the first pass has made of them; elementwise bodies have none.
TEST_F(GpuCodeTest, BytesAreMovedOnce) {
  struct Case {
    const char* text;
    Extents extents;
    uint64_t inputs, reads;
  };
  for (const Case& one :
       {Case{kSoftmax, {64, 768}, 1, 1}, Case{kSoftmax, {37, 83}, 1, 1}, Case{kSoftmax, {3, 4096}, 1, 1},
        Case{kSoftmax, {2, 16400}, 1, 1}, Case{kSoftmax, {2, 32776}, 1, 3}, Case{kSoftmax, {2, 32770}, 1, 3},
        Case{kBounded, {2, 16400}, 1, 1}, Case{kBounded, {2, 32776}, 1, 2}, Case{kSwiglu, {5, 771}, 2, 1},
        Case{kSwiglu, {2, 50257}, 2, 1}})
    for (const char* element : {"f32", "bf16"}) {
      func::FuncOp body = parse(one.text, one.extents, element);
      const auto bytes = static_cast<uint64_t>(bytesOf(cast<RankedTensorType>(body.getResultTypes()[0])));
      uint64_t results = 0;
      auto kernel = EmulatedKernel::of(body, /*watched=*/true);
      ASSERT_TRUE(static_cast<bool>(kernel));
      std::vector<std::string> memory(one.inputs, std::string(bytes, 1));
      for (Type type : body.getResultTypes()) {
        memory.emplace_back(bytesOf(cast<RankedTensorType>(type)), 1);
        results += memory.back().size();
      }
      std::vector<void*> operands;
      for (std::string& buffer : memory) operands.push_back(buffer.data());
      takeTraffic();
      ASSERT_EQ(kernel->call(operands.data(), false), "");
      const Traffic traffic = takeTraffic();
      EXPECT_EQ(traffic.read, one.reads * one.inputs * bytes) << one.extents.columns;
      EXPECT_EQ(traffic.written, results) << one.extents.columns;
    }
}

int count(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  return static_cast<int>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), regex), std::sregex_iterator()));
}

std::string ptxOf(func::FuncOp body) {
  FailureOr<PtxKernel> kernel = generatePtx(body);
  EXPECT_TRUE(succeeded(kernel));
  return succeeded(kernel) ? kernel->ptx : "";
}

TEST_F(GpuCodeTest, TheSameBodyGivesTheSameBytes) {
  for (const BodyCase& body : kBodies)
    for (Extents extents : {Extents{5, 771}, Extents{64, 768}})
      EXPECT_EQ(ptxOf(parse(body.text, extents, "bf16")), ptxOf(parse(body.text, extents, "bf16")))
          << body.name;
}

// Without .rn, ptxas may make one fma of a product and a sum.
TEST_F(GpuCodeTest, NothingMayBeContracted) {
  for (const BodyCase& body : kBodies)
    for (const char* element : {"f32", "bf16", "f16"}) {
      const std::string ptx = ptxOf(parse(body.text, {64, 768}, element));
      EXPECT_EQ(count(ptx, R"(\b(add|sub|mul)\.(ftz\.)?(f16|f32|f64|bf16))"), 0) << body.name;
      EXPECT_EQ(count(ptx, R"(\.ftz|\.approx|div\.full|\bcall\b|\.local\b)"), 0) << body.name;
    }
  for (const char* body : {kLayerNorm, kRmsNorm, kRmsNormGrad, kAdamW})
    EXPECT_EQ(count(ptxOf(parse(body, {64, 768})), R"(\bfma\.)"), 0);  // their formulas have none
  EXPECT_GT(count(ptxOf(parse(kGelu, {64, 768})), R"(\bfma\.rn\.f32)"), 0);
  EXPECT_GT(count(ptxOf(parse(kRmsNorm, {64, 768})), R"(\b(add|mul)\.rn\.f32)"), 0);
}

// Of bodies whose arguments and results are whole rows or columns.
TEST_F(GpuCodeTest, AlignedRowsMoveBy128Bits) {
  for (const char* body : {kRmsNorm, kRmsNormGrad, kGelu, kSoftmax, kSwiglu})
    for (Extents extents : {Extents{64, 768}, Extents{64, 4096}, Extents{8, 50304}})
      for (const char* element : {"f32", "bf16", "f16"}) {
        const std::string ptx = ptxOf(parse(body, extents, element));
        const int all = count(ptx, R"(\b(ld|st)\.global)");
        EXPECT_GT(all, 0);
        EXPECT_EQ(count(ptx, R"(\b(ld|st)\.global\.v4\.b32)"), all) << extents.columns << " of " << element;
      }
  // And no more than the alignment of a row allows.
  EXPECT_EQ(count(ptxOf(parse(kSoftmax, {8, 770}, "bf16")), R"(\b(ld|st)\.global\.v)"), 0);
  EXPECT_GT(count(ptxOf(parse(kSoftmax, {8, 772}, "bf16")), R"(\bld\.global\.v2\.b32)"), 0);
  EXPECT_EQ(count(ptxOf(parse(kSoftmax, {8, 772}, "bf16")), R"(\bld\.global\.v4)"), 0);
}

}  // namespace
}  // namespace ft::compiler::testing
