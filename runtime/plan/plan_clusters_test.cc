#include "runtime/plan/plan_clusters.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "runtime/plan/testing/tiny_plan.h"
#include "runtime/plan/verify_plan.h"

namespace ft {
namespace {

using Op = ClusterBody::Op;

// y = x / max(x over columns), in bf16, and the sum of x over rows.
ClusterBody SomeBody() {
  ClusterBody body;
  body.rows = 40;
  body.columns = body.last_columns = 6;
  body.inputs = {{DType::kBF16, 240}};
  body.reads = {{0, body.Whole()}};
  body.results = {{DType::kBF16, 240}, {DType::kF32, 6}};
  body.ops = {
      {.kind = Op::Kind::kReduce, .reduction = ReductionKind::kMax, .operands = {0}, .dtype = DType::kBF16},
      {.function = Elementwise::kDiv, .operands = {0, 1}, .dtype = DType::kF32},
      {.kind = Op::Kind::kConvert, .operands = {2}, .dtype = DType::kBF16}};
  body.outputs = {{.value = 3, .result = 0, .place = body.Whole()},
                  {.value = 0, .result = 1, .place = {.column_stride = 1}, .over_rows = true}};
  return body;
}

TEST(PlanClustersTest, WhatWasWrittenIsRead) {
  const proto::Cluster cluster = ToProto(SomeBody());
  const absl::StatusOr<ClusterBody> body = ClusterBodyOf(cluster);
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(ToProto(*body).SerializeAsString(), cluster.SerializeAsString());
  EXPECT_EQ(body->BlockRows(), 16);
  EXPECT_EQ(body->Blocks(), 3);
  EXPECT_EQ(body->PartialBytes(), 128);  // 3 blocks of 6 numbers
  // Rows that are added to side by side share no sets of a cache.
  EXPECT_EQ(body->PartialOffsets(8000), (std::vector<int64_t>{0, 4096 + 4096 + 1088}));
  EXPECT_EQ(LevelsOf(*body), (std::vector<int>{0, 1, 1, 1}));
  EXPECT_EQ(HasColumns(*body), (std::vector<bool>{true, false, true, true}));
}

struct ClusterDamage {
  std::string name;
  std::function<void(proto::Cluster&)> make;
  std::string says;
};

class DamagedClusterTest : public testing::TestWithParam<ClusterDamage> {};

TEST_P(DamagedClusterTest, IsRefused) {
  proto::Cluster cluster = ToProto(SomeBody());
  GetParam().make(cluster);
  const absl::StatusOr<ClusterBody> body = ClusterBodyOf(cluster);
  ASSERT_FALSE(body.ok());
  EXPECT_NE(body.status().message().find(GetParam().says), std::string::npos) << body.status();
  proto::Plan plan = TinyPlan();
  *plan.add_clusters() = cluster;
  const absl::Status status = VerifyPlan(plan);
  EXPECT_NE(status.message().find("invalid plan: cluster 1: "), std::string::npos) << status;
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, DamagedClusterTest,
    testing::Values(
        ClusterDamage{"NoRows", [](proto::Cluster& c) { c.set_rows(0); }, "space of 0 rows"},
        ClusterDamage{"TooLarge", [](proto::Cluster& c) { c.set_rows(uint64_t{1} << 50); }, "is none"},
        ClusterDamage{"Huge", [](proto::Cluster& c) { c.set_columns(uint64_t{1} << 63); }, "too large"},
        ClusterDamage{"LongLastRow", [](proto::Cluster& c) { c.set_last_columns(7); }, "7 in the last"},
        ClusterDamage{"ShortLastRow", [](proto::Cluster& c) { c.set_last_columns(5); },
                      "last row is shorter"},
        ClusterDamage{"RowsOfNothing",
                      [](proto::Cluster& c) {
                        c.set_rows(uint64_t{1} << 40);
                        c.mutable_reads(0)->mutable_place()->clear_steps();
                        c.mutable_outputs()->DeleteSubrange(0, 1);
                        c.mutable_outputs(0)->set_result(0);
                        c.mutable_results()->DeleteSubrange(0, 1);
                      },
                      "no input or output has its rows"},
        ClusterDamage{"BeyondInput",
                      [](proto::Cluster& c) { c.mutable_reads(0)->mutable_place()->set_begin(1); },
                      "reaches element 240 of 240"},
        ClusterDamage{"FarBeyondInput",
                      [](proto::Cluster& c) {
                        c.mutable_reads(0)->mutable_place()->mutable_steps(0)->set_stride(~uint64_t{0});
                      },
                      "reaches element"},
        ClusterDamage{
            "StepOfNothing",
            [](proto::Cluster& c) { c.mutable_reads(0)->mutable_place()->mutable_steps(0)->set_every(0); },
            "place is none"},
        ClusterDamage{"InputOfRead", [](proto::Cluster& c) { c.mutable_reads(0)->set_input(1); },
                      "input 1 is none"},
        ClusterDamage{"StateOfOne", [](proto::Cluster& c) { c.mutable_inputs(0)->set_state(true); },
                      "three i64"},
        ClusterDamage{"DrawOfNumbers",
                      [](proto::Cluster& c) {
                        c.mutable_ops(2)->set_name("random_bits");
                        c.mutable_ops(2)->set_operands(0, 0);
                      },
                      "takes the state of a generator"},
        ClusterDamage{"TypeOfInput", [](proto::Cluster& c) { c.mutable_inputs(0)->set_dtype(proto::F64); },
                      "f64"},
        ClusterDamage{"UnknownType",
                      [](proto::Cluster& c) { c.mutable_ops(0)->set_dtype(static_cast<proto::DType>(99)); },
                      "unknown type"},
        ClusterDamage{"UnknownOp", [](proto::Cluster& c) { c.mutable_ops(1)->set_name("divide"); },
                      "unknown op"},
        ClusterDamage{"UnknownReduction",
                      [](proto::Cluster& c) { c.mutable_ops(0)->set_name("reduce_mean"); },
                      "unknown reduction"},
        ClusterDamage{"ValueOfItself", [](proto::Cluster& c) { c.mutable_ops(1)->set_operands(1, 2); },
                      "no value before it"},
        ClusterDamage{"FewOperands",
                      [](proto::Cluster& c) { c.mutable_ops(1)->mutable_operands()->RemoveLast(); },
                      "div takes 2 operands"},
        ClusterDamage{"Parameters", [](proto::Cluster& c) { c.mutable_ops(1)->add_parameters(1); },
                      "div takes"},
        ClusterDamage{"NotRounded",
                      [](proto::Cluster& c) {
                        c.mutable_ops(2)->set_name("scale");
                        c.mutable_ops(2)->add_parameters(0.1);
                      },
                      "is rounded to f32"},
        ClusterDamage{"ReducedTwice",
                      [](proto::Cluster& c) {
                        c.mutable_ops(2)->set_name("reduce_sum");
                        c.mutable_ops(2)->set_operands(0, 1);
                      },
                      "has no columns"},
        ClusterDamage{"TypeOfReduction", [](proto::Cluster& c) { c.mutable_ops(0)->set_dtype(proto::F32); },
                      "cannot be of type f32"},
        ClusterDamage{"NoOutput", [](proto::Cluster& c) { c.clear_outputs(); }, "write 0 elements"},
        ClusterDamage{"ValueOfOutput", [](proto::Cluster& c) { c.mutable_outputs(0)->set_value(4); },
                      "is none"},
        ClusterDamage{"TypeOfOutput", [](proto::Cluster& c) { c.mutable_results(0)->set_dtype(proto::F32); },
                      "it has type"},
        ClusterDamage{"ResultOfOutput", [](proto::Cluster& c) { c.mutable_outputs(0)->set_result(2); },
                      "result 2 is none"},
        ClusterDamage{"PartOfResult", [](proto::Cluster& c) { c.mutable_results(0)->set_elements(241); },
                      "write 240 elements of 241"},
        ClusterDamage{"ColumnsOfOutput",
                      [](proto::Cluster& c) { c.mutable_outputs(0)->mutable_place()->set_column_stride(0); },
                      "has columns"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ft
