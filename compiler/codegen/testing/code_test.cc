#include "compiler/codegen/testing/code_test.h"

#include "compiler/codegen/testing/guarded_run.h"

namespace ft::compiler::testing {
namespace {

using namespace mlir;

std::string replaced(std::string text, llvm::StringRef what, const std::string &by) {
  for (size_t at = 0; (at = text.find(what.data(), at, what.size())) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

} // namespace

OwningOpRef<ModuleOp> parseBody(MLIRContext &context, llvm::StringRef text, Extents extents,
                                llvm::StringRef element) {
  std::string rows = std::to_string(extents.rows), columns = std::to_string(extents.columns);
  std::string source = replaced(text.str(), "$M", rows + "x" + columns);
  source = replaced(replaced(replaced(source, "$R", rows), "$C", columns), "$T", element.str());
  return parseSourceString<ModuleOp>(source, &context);
}

std::vector<double> numbers(size_t count, uint64_t seed, bool positive) {
  std::vector<double> result(count);
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (double &value : result) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    double unit = static_cast<double>(state >> 11) * 0x1p-53;
    value = positive ? 0.25 + 1.75 * unit : 4 * unit - 2;
  }
  return result;
}

CodeTest::CodeTest() : context(MLIRContext::Threading::DISABLED) {
  context.loadDialect<mlir::ft::FtDialect, func::FuncDialect>();
}

func::FuncOp CodeTest::parse(llvm::StringRef text, Extents extents, llvm::StringRef element) {
  module = parseBody(context, text, extents, element);
  return module ? *module->getOps<func::FuncOp>().begin() : func::FuncOp();
}

std::map<X86Level, std::vector<HostTensor>> CodeTest::run(func::FuncOp body,
                                                          const std::vector<HostTensor> &inputs) {
  std::map<X86Level, std::vector<HostTensor>> results;
  auto types =
      llvm::map_to_vector(body.getResultTypes(), [](Type type) { return cast<RankedTensorType>(type); });
  for (X86Level level : kX86Levels) {
    FailureOr<GeneratedKernel> kernel = generateKernel(body, level);
    EXPECT_TRUE(succeeded(kernel));
    if (failed(kernel))
      return {};
    if (!canRun(level))
      continue;
    MappedKernel mapped(std::move(*kernel));
    std::vector<std::string> whole = runOn(mapped, inputs, types, mapped.interface().rows);
    EXPECT_EQ(whole.size(), types.size()) << "wrote beside its results, " << nameOf(level).str();
    EXPECT_TRUE(whole == runOn(mapped, inputs, types, 3))
        << "cuts of the rows change bits, " << nameOf(level).str();
    for (auto [type, bytes] : llvm::zip(types, whole)) {
      results[level].emplace_back(type);
      results[level].back().fromMemory(bytes.data());
    }
  }
  if (!results.count(X86Level::V4))
    return results;
  for (size_t i = 0; i < types.size(); ++i)
    EXPECT_TRUE(sameBits(results[X86Level::V3][i], results[X86Level::V4][i]))
        << "v3 and v4 differ in result " << i;
  return results;
}

} // namespace ft::compiler::testing
