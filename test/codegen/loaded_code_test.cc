// The kernel "cluster" of the CUDA backend with the code that a plan has for it, run on the host: entries,
// launches and scratch are those of the plan.
#include "compiler/codegen/cluster_body.h"
#include "compiler/codegen/plan_code.h"
#include "compiler/codegen/testing/body_cases.h"
#include "compiler/codegen/testing/guarded_run.h"
#include "runtime/backends/cuda/register.h"
#include "runtime/base/philox.h"
#include "runtime/plan/plan_clusters.h"
#include "test/codegen/emulated_kernel.h"
#include "test/doubles/cuda/reference_products.h"

namespace ft::compiler::testing {
namespace {

using namespace mlir;

class EmulatedCode final : public cuda::LoadedCode {
 public:
  explicit EmulatedCode(const EmulatedKernel& kernel) : kernel_(kernel) {}
  int Launch(absl::Span<void* const> addresses, int64_t, cuda::StreamHandle) const override {
    return kernel_.call(addresses.data(), /*descending=*/false).empty() ? 0 : 1;
  }

 private:
  const EmulatedKernel& kernel_;
};

// Takes the code of one kernel.
class EmulatedLoader final : public cuda::CodeLoader {
 public:
  explicit EmulatedLoader(const EmulatedKernel& kernel) : kernel_(kernel) {}
  absl::StatusOr<std::shared_ptr<const cuda::LoadedCode>> Load(const ClusterCode& code) override {
    ++loads;
    EXPECT_NE(code.bytes.find(".visible .entry kernel("), std::string::npos);
    expectLaunch(kernel_.interface().kernel, code.kernel_launch);
    expectLaunch(kernel_.interface().combine, code.combine_launch);
    return std::make_shared<EmulatedCode>(kernel_);
  }

  int loads = 0;

 private:
  static void expectLaunch(const GpuLaunch& expected, const ClusterCode::Launch& launch) {
    EXPECT_EQ(launch.blocks, expected.blocks);
    EXPECT_EQ(launch.threads, expected.threads);
  }

  const EmulatedKernel& kernel_;
};

class LoadedCodeTest : public CodeTest {
 protected:
  // The cluster of a plan whose code was made.
  std::shared_ptr<Cluster> clusterOf(func::FuncOp body) {
    proto::Plan plan;
    FailureOr<ClusterBody> facts = clusterBodyOf(body);
    if (failed(facts)) return nullptr;
    *plan.add_clusters() = ToProto(*facts);
    EXPECT_TRUE(makeCode(plan, {"all"}).ok());
    EXPECT_TRUE(compareCode(plan).ok());
    auto clusters = ClustersOf(plan);
    EXPECT_TRUE(clusters.ok()) << clusters.status();
    return clusters->front();
  }

  static std::vector<Tensor> tensorsOf(llvm::ArrayRef<RankedTensorType> types,
                                       llvm::ArrayRef<ClusterBody::Buffer> like, void* const* addresses) {
    std::vector<Tensor> tensors;
    for (auto [i, type] : llvm::enumerate(types))
      tensors.push_back({addresses[i], like[i].dtype, 1, {type.getNumElements()}});
    return tensors;
  }

  static llvm::SmallVector<RankedTensorType> ranked(TypeRange types) {
    return llvm::map_to_vector(types, [](Type type) { return cast<RankedTensorType>(type); });
  }

  cuda::KernelOr make(const KernelOperands& operands, const KernelAttributes& attributes,
                      cuda::CodeLoader* loader) {
    cuda::KernelTable table;
    cuda::RegisterCluster(table);
    return table.Find("cluster")({.operands = operands,
                                  .attributes = attributes,
                                  .properties = properties_,
                                  .products = products_,
                                  .attention = nullptr,
                                  .attention_choice = cuda::AttentionChoice::kOwn,
                                  .code = loader,
                                  .notes = notes_});
  }

 private:
  const cuda::DeviceProperties properties_;
  cuda::emulation::ReferenceProducts products_;
  std::vector<std::string> notes_;
};

TEST_F(LoadedCodeTest, TheCodeOfAPlanIsRunOnceLoaded) {
  for (const BodyCase& bodyCase : kBodies) {
    for (Extents extents : {Extents{37, 83}, Extents{300, 24}, Extents{18, 1096}}) {
      SCOPED_TRACE(std::string(bodyCase.name) + " " + std::to_string(extents.rows));
      func::FuncOp body = parse(bodyCase.text, extents);
      auto emulated = EmulatedKernel::of(body);
      ASSERT_TRUE(static_cast<bool>(emulated));
      EmulatedLoader loader(*emulated);
      std::shared_ptr<Cluster> cluster = clusterOf(body);
      ASSERT_NE(cluster, nullptr);
      const ClusterBody& facts = cluster->body;
      KernelAttributes attributes;
      attributes.SetCluster(cluster);
      std::vector<int64_t> streams;
      for (uint32_t draw = 0; draw < facts.Draws(); ++draw)
        streams.push_back(streamOf(draw) - kFirstOpStream);
      attributes.Add("streams", streams);
      std::vector<HostTensor> inputs = inputsOf(body, bodyCase), expected = runEmulated(body, inputs);

      const int64_t bytes = facts.PartialOffsets(cluster->codes.back().partial_bytes).back();
      auto workspace = std::make_unique<char[]>(bytes + 64);
      llvm::SmallVector<RankedTensorType> results = ranked(body.getResultTypes());
      std::vector<std::string> got = runGuarded(inputs, results, {}, 0, [&](void* const* addresses) {
        KernelOperands operands = {tensorsOf(ranked(body.getArgumentTypes()), facts.inputs, addresses),
                                   tensorsOf(results, facts.results, addresses + inputs.size()),
                                   {workspace.get(), DType::kU8, 1, {bytes}}};
        for (int i = 0; i < 2; ++i) {
          cuda::KernelOr kernel = make(operands, attributes, &loader);
          ASSERT_TRUE(kernel.ok()) << kernel.status();
          EXPECT_EQ(static_cast<cuda::CudaKernel&>(**kernel).Launch(nullptr), 0);
        }
        if (bytes == 0) return;
        operands.workspace.dims[0] = bytes - 4;
        EXPECT_EQ(make(operands, attributes, &loader).status().code(), absl::StatusCode::kInvalidArgument);
      });
      EXPECT_EQ(loader.loads, 1) << "once for all kernels";
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(got[i], expected[i].toMemory()) << "result " << i;
    }
  }
}

}  // namespace
}  // namespace ft::compiler::testing
