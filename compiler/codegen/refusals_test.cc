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
  EXPECT_EQ(
      errorOf("func.func @f(%x: tensor<2x3xi64>) -> tensor<2x3xi64> {\n %y = ft.neg %x : tensor<2x3xi64>\n"
              "return %y : tensor<2x3xi64> }"),
      "'func.func' op elements of type 'i64' are none that a generated kernel takes: f32, bf16, f16, i32 or "
      "i1\n");
}

TEST_F(RefusalsTest, OpsThatAreNoPrimitivesOfASpace) {
  EXPECT_EQ(
      errorOf(
          "func.func @f(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {\n"
          "%y = ft.transpose %x [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>\n return %y : tensor<3x2xf32> }"),
      "'ft.transpose' op cannot be part of a generated kernel\n");
}

TEST_F(RefusalsTest, ReductionsOverRowsThatAreUsed) {
  EXPECT_EQ(errorOf("func.func @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {\n"
                    "%s = ft.reduce \"sum\" %x over [0] : tensor<2x3xf32> -> tensor<3xf32>\n"
                    "%y = ft.mul %x, %s : tensor<2x3xf32>, tensor<3xf32>\n return %y : tensor<2x3xf32> }"),
            "'ft.mul' op reads a reduction over rows, which a cluster may only return\n");
}

// Columns where rows are wanted, in a square.
TEST_F(RefusalsTest, RowsThatAreReadAsColumns) {
  EXPECT_EQ(
      errorOf("func.func @f(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {\n"
              "%s = ft.reduce \"sum\" %x over [1] : tensor<3x3xf32> -> tensor<3xf32>\n"
              "%y = ft.mul %x, %s : tensor<3x3xf32>, tensor<3xf32>\n return %y : tensor<3x3xf32> }"),
      "'ft.mul' op operand 1, 'tensor<3xf32>', lies elsewhere in the space of rows and columns than the "
      "result\n");
}

TEST_F(RefusalsTest, DimensionsInTheMiddle) {
  EXPECT_EQ(errorOf("func.func @f(%x: tensor<2x3x5xf32>, %b: tensor<2x1x5xf32>) -> tensor<2x3x5xf32> {\n"
                    "%s = ft.broadcast %b : tensor<2x1x5xf32> -> tensor<2x3x5xf32>\n"
                    "%y = ft.mul %x, %s : tensor<2x3x5xf32>\n return %y : tensor<2x3x5xf32> }"),
            "'ft.broadcast' op repeats other than rows, columns or one number of its cluster\n");
  EXPECT_EQ(errorOf("func.func @f(%x: tensor<2x3x5xf32>) -> tensor<2x5xf32> {\n"
                    "%s = ft.reduce \"sum\" %x over [1] : tensor<2x3x5xf32> -> tensor<2x5xf32>\n return %s : "
                    "tensor<2x5xf32> }"),
            "'ft.reduce' op reduces other than the columns or all of the rows of a space of 6 x 5\n");
}

TEST_F(RefusalsTest, ResultsThatSeveralRowsWouldWrite) {
  EXPECT_EQ(
      errorOf("func.func @f(%x: tensor<2x3xf32>, %w: tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>) {\n"
              "%v = ft.exp %w : tensor<3xf32>\n %y = ft.mul %x, %v : tensor<2x3xf32>, tensor<3xf32>\n"
              "return %y, %v : tensor<2x3xf32>, tensor<3xf32> }"),
      "'func.return' op result 1, 'tensor<3xf32>', is the same in several of the 2 rows of the cluster\n");
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
