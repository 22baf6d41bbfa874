#include "dialects/ft/facts.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <string>

namespace mlir::ft {
namespace {

using ::ft::FactField;
using ::ft::FactValue;
using ::ft::ModelFacts;

ModelFacts someFacts() {
  ModelFacts facts;
  facts.model_type = "mine";
  facts.vocab_size = 8;
  facts.hidden_size = 4;
  facts.num_layers = 3;
  facts.num_heads = 2;
  facts.num_kv_heads = 1;
  facts.head_size = 2;
  facts.intermediate_size = 8;
  facts.max_positions = 16;
  facts.activation = "silu";
  return facts;
}

class FactsTest : public testing::Test {
protected:
  FailureOr<ModelFacts> read(llvm::StringRef text) {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      error = diagnostic.str();
      return success();
    });
    Attribute attr = parseAttribute(text, &context);
    if (!attr)
      return failure();
    return factsFromAttr([&] { return emitError(UnknownLoc::get(&context)); }, attr);
  }
  std::string errorOf(llvm::StringRef text) {
    error.clear();
    EXPECT_TRUE(failed(read(text)));
    return error;
  }

  MLIRContext context;
  std::string error;
};

TEST_F(FactsTest, EveryFactComesBackFromText) {
  for (const FactField &field : ::ft::FactFields()) {
    ModelFacts facts = someFacts();
    FactValue value = ::ft::GetFact(facts, field);
    if (auto *flag = std::get_if<bool>(&value))
      *flag = true;
    if (auto *number = std::get_if<int64_t>(&value))
      *number = 2 * *number + (field.required ? 0 : 3);
    if (auto *real = std::get_if<double>(&value))
      *real += 0.1;
    if (auto *list = std::get_if<std::vector<int64_t>>(&value))
      *list = {0, 2};
    ASSERT_TRUE(::ft::SetFact(facts, field, value));
    std::string text;
    llvm::raw_string_ostream(text) << factsToAttr(&context, facts);
    FailureOr<ModelFacts> again = read(text);
    ASSERT_TRUE(succeeded(again)) << text << ": " << error;
    EXPECT_EQ(*again, facts) << text;
  }
}

TEST_F(FactsTest, WhatIsNeutralIsNotWritten) {
  EXPECT_EQ(factsToAttr(&context, someFacts()).size(), 10u);
  ModelFacts facts = someFacts();
  facts.sliding_window = 8;
  EXPECT_EQ(factsToAttr(&context, facts).size(), 11u);
}

TEST_F(FactsTest, AreTypedAndVerified) {
  EXPECT_EQ(errorOf("5 : i64"), "'ft.facts' is 5 : i64; expected {fact = value, ...}");
  EXPECT_EQ(errorOf("{hidden = 64 : i64}"), "'ft.facts' has \"hidden\", which is no fact of a model");
  EXPECT_EQ(errorOf("{hidden_size = 64.0 : f64}"),
            "'ft.facts': \"hidden_size\" is 6.400000e+01 : f64; expected an i64");
  EXPECT_EQ(errorOf("{hidden_size = 64 : i32}"), "'ft.facts': \"hidden_size\" is 64 : i32; expected an i64");
  EXPECT_EQ(errorOf("{norm_eps = 1 : i64}"), "'ft.facts': \"norm_eps\" is 1 : i64; expected an f64");
  EXPECT_EQ(errorOf("{norm_eps = 1.0 : f32}"),
            "'ft.facts': \"norm_eps\" is 1.000000e+00 : f32; expected an f64");
  EXPECT_EQ(errorOf("{tied_head = 1 : i64}"), "'ft.facts': \"tied_head\" is 1 : i64; expected true or false");
  EXPECT_EQ(errorOf("{activation = true}"), "'ft.facts': \"activation\" is true; expected a string");
  EXPECT_EQ(errorOf("{sliding_layers = [0, 1]}"),
            "'ft.facts': \"sliding_layers\" is [0, 1]; expected array<i64>");
  EXPECT_EQ(errorOf("{model_type = \"mine\"}"), "'ft.facts': hidden_size is missing");
  EXPECT_EQ(errorOf("{}"), "'ft.facts': model_type is missing");
}

} // namespace
} // namespace mlir::ft
