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
  body.inputs = {{.dtype = DType::kBF16, .rows = 40, .columns = true}};
  body.ops = {{.kind = Op::Kind::kReduce,
               .reduction = ReductionKind::kMax,
               .operands = {0},
               .parameters = {},
               .dtype = DType::kBF16},
              {.function = Elementwise::kDiv, .operands = {0, 1}, .parameters = {}, .dtype = DType::kF32},
              {.kind = Op::Kind::kConvert, .operands = {2}, .parameters = {}, .dtype = DType::kBF16}};
  body.outputs = {{.value = 3, .dtype = DType::kBF16, .columns = true},
                  {.value = 0, .dtype = DType::kF32, .columns = true, .over_rows = true}};
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
                        c.mutable_inputs(0)->set_rows(1);
                        c.mutable_outputs()->DeleteSubrange(0, 1);
                      },
                      "no input or output has its rows"},
        ClusterDamage{"RowsOfInput", [](proto::Cluster& c) { c.mutable_inputs(0)->set_rows(3); },
                      "do not divide"},
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
        ClusterDamage{"NoOutput", [](proto::Cluster& c) { c.clear_outputs(); }, "0 outputs"},
        ClusterDamage{"ValueOfOutput", [](proto::Cluster& c) { c.mutable_outputs(0)->set_value(4); },
                      "is none"},
        ClusterDamage{"TypeOfOutput", [](proto::Cluster& c) { c.mutable_outputs(0)->set_dtype(proto::F32); },
                      "it has type"},
        ClusterDamage{"ColumnsOfOutput", [](proto::Cluster& c) { c.mutable_outputs(0)->set_columns(false); },
                      "has columns"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ft
