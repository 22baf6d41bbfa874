// What is no cluster body, and code that does not stand alone.
#include "compiler/codegen/lowering.h"
#include "compiler/codegen/ptx_kernel.h"
#include "compiler/codegen/testing/code_test.h"
#include "compiler/codegen/x86/flat_code.h"
#include "compiler/codegen/x86/machine_code.h"

namespace ft::compiler::testing {
namespace {

using namespace mlir;

class RefusalsTest : public CodeTest {
protected:
  // The one error, without its op's name.
  std::string errorOf(llvm::StringRef text) {
    std::string errors;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      errors += diagnostic.str() + "\n";
      return success();
    });
    func::FuncOp body = parse(text);
    if (!body)
      return "does not parse: " + errors;
    EXPECT_TRUE(failed(generateKernel(body, X86Level::V3)));
    std::string ofCpu = std::exchange(errors, "");
    EXPECT_TRUE(failed(generatePtx(body)));
    EXPECT_EQ(errors, ofCpu);
    return errors;
  }
};

TEST_F(RefusalsTest, TypesThatRegistersDoNotHold) {
  EXPECT_EQ(errorOf("func.func @f(%x: tensor<2x3xf64>) -> tensor<2x3xf64> {\n return %x : tensor<2x3xf64> }"),
            "'func.func' op elements of type 'f64' are none that a generated kernel takes: f32, bf16, f16, "
            "i32, i64 or "
            "i1\n");
}

TEST_F(RefusalsTest, OpsThatAreNoPrimitivesOfASpace) {
  EXPECT_EQ(errorOf("func.func @f(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {\n"
                    "%y = ft.matmul %x, %x : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>\n"
                    "return %y : tensor<3x3xf32> }"),
            "'ft.matmul' op cannot be part of a generated kernel\n");
}

TEST_F(RefusalsTest, ReductionsOverRowsThatAreUsed) {
  EXPECT_EQ(
      errorOf("func.func @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {\n"
              "%s = ft.reduce \"sum\" %x over [0] : tensor<2x3xf32> -> tensor<3xf32>\n"
              "%y = ft.mul %x, %s : tensor<2x3xf32>, tensor<3xf32>\n return %y : tensor<2x3xf32> }"),
      "'ft.reduce' op reduces other than the columns of the space of 2 rows and 3 columns of its cluster\n");
}

// Columns where rows are wanted, in a square.
TEST_F(RefusalsTest, RowsThatAreReadAsColumns) {
  EXPECT_EQ(
      errorOf("func.func @f(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {\n"
              "%s = ft.reduce \"sum\" %x over [1] : tensor<3x3xf32> -> tensor<3xf32>\n"
              "%y = ft.mul %x, %s : tensor<3x3xf32>, tensor<3xf32>\n return %y : tensor<3x3xf32> }"),
      "'ft.reduce' op reduces other than the columns of the space of 3 rows and 3 columns of its cluster\n");
}

TEST_F(RefusalsTest, DimensionsThatAreNotBesideEachOther) {
  EXPECT_EQ(
      errorOf("func.func @f(%x: tensor<2x3x5xf32>) -> tensor<3xf32> {\n"
              "%s = ft.reduce \"sum\" %x over [0, 2] : tensor<2x3x5xf32> -> tensor<3xf32>\n return %s : "
              "tensor<3xf32> }"),
      "'ft.reduce' op reduces dimensions that are not beside each other\n");
}

TEST_F(RefusalsTest, ResultsThatSeveralRowsWouldWrite) {
  EXPECT_EQ(
      errorOf("func.func @f(%x: tensor<2x3xf32>, %w: tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>) {\n"
              "%v = ft.exp %w : tensor<3xf32>\n %y = ft.mul %x, %v : tensor<2x3xf32>, tensor<3xf32>\n"
              "return %y, %v : tensor<2x3xf32>, tensor<3xf32> }"),
      "'ft.exp' op has neither an element for each place nor one for each row of the space of 2 rows and 3 "
      "columns "
      "of its cluster\n");
}

TEST_F(RefusalsTest, CodeThatCallsALibrary) {
  std::unique_ptr<MLIRContext> code = makeCodeContext();
  OwningOpRef<ModuleOp> calls = parseSourceString<ModuleOp>(
      "func.func private @expf(f32) -> f32\n func.func @kernel(%x: f32) -> f32 {\n"
      "%y = func.call @expf(%x) : (f32) -> f32\n %z = arith.addf %y, %x : f32\n return %z : f32 }",
      code.get());
  ASSERT_TRUE(calls);
  llvm::Expected<std::string> object = compileToObject(*calls, X86Level::V3);
  ASSERT_TRUE(bool(object));
  llvm::Expected<FlatCode> flat = flatten(*object);
  ASSERT_FALSE(bool(flat));
  EXPECT_EQ(llvm::toString(flat.takeError()), "undefined symbol expf");
}

} // namespace
} // namespace ft::compiler::testing
