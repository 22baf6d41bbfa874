// Tables as nccl-tests print them, of several versions and launchers.
#include "tools/ftexec/calibrate/nccl_log.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/cost/curve.h"
#include "runtime/cost/transfers.h"

namespace ft {
namespace {

using ::testing::HasSubstr;

std::string Ranks(int nodes, int on_node, const std::string& label = "") {
  std::string text = label + "# Using devices\n";
  for (int rank = 0; rank < nodes * on_node; ++rank)
    text += label + "#  Rank " + std::to_string(rank) + " Group  0 Pid 4711 on host-" +
            std::to_string(rank / on_node) + " device " + std::to_string(rank % on_node) +
            " [0x07] NVIDIA H100\n";
  return text;
}

constexpr char kHead[] =
    "#                                                              out-of-place                       "
    "in-place          \n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   "
    "busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  "
    "(GB/s)       \n";

std::string Gathers(int nodes, int on_node) {
  return "# Collective test starting: all_gather_perf\n" + Ranks(nodes, on_node) + kHead +
         "           0             0     float    none      -1     5.70    0.00    0.00      0     5.54    "
         "0.00    0.00      0\n"
         "       65536          2048     float    none      -1    20.00    3.28    2.87      0    21.00    "
         "3.12    2.73      0\n"
         "  1073741824      33554432     float    none      -1  4000.00  268.44  234.88    N/A  4100.00  "
         "261.89  229.15    N/A\n"
         "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 118.0\n";
}

TEST(NcclLogTest, ATable) {
  const auto read = ReadNcclLog(Gathers(1, 8));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 1u);
  const Target::Collective& gathers = read->front();
  EXPECT_EQ(gathers.opcode(), proto::ALL_GATHER);
  EXPECT_EQ(gathers.nodes(), 1u);
  EXPECT_EQ(gathers.ranks_on_node(), 8u);
  ASSERT_EQ(gathers.bytes_per_s_size(), 2);
  EXPECT_EQ(gathers.bytes_per_s(0).at(), 65536);
  EXPECT_DOUBLE_EQ(gathers.bytes_per_s(0).value(), 65536 / 20e-6);
  EXPECT_DOUBLE_EQ(gathers.bytes_per_s(1).value(), 1073741824 / 4000e-6);
}

TEST(NcclLogTest, OldTablesLabelsAndRepeats) {
  // No group and no root; each line with a label of mpirun; a size three times.
  const std::string label = "[1,0]<stdout>:";
  std::string text = "$ mpirun -np 4 ./build/reduce_scatter_perf -b 8 -e 1M\n" + label + "# Using devices\n";
  for (const char* rank : {"0 Pid 1 on a device 0", "1 Pid 2 on a device 1", "2 Pid 3 on node_perf device 0",
                           "3 Pid 4 on node_perf device 1"})
    text += label + "#   Rank  " + rank + " [0x07] Tesla V100\n";
  text += label +
          "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   "
          "busbw  error\n";
  for (const char* us : {"30.0", "10.0", "20"})
    text += label + "  1024  64  float  sum  " + us + "  0.1  0.1  0e+00  31.0  0.1  0.1  0e+00\n";
  const auto read = ReadNcclLog(text);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ(read->front().opcode(), proto::REDUCE_SCATTER);
  EXPECT_EQ(read->front().nodes(), 2u);
  EXPECT_EQ(read->front().ranks_on_node(), 2u);
  EXPECT_DOUBLE_EQ(read->front().bytes_per_s(0).value(), 1024 / 20e-6);
}

TEST(NcclLogTest, TablesWithoutAnOperationAndWithMoreColumns) {
  for (const auto& [head, row] :
       {std::pair("size count type time algbw busbw error time algbw busbw error",
                  "4096 64 float 40 1 1 0 50 1 1 0"),
        std::pair("size count type redop root time algbw busbw #wrong time algbw busbw #wrong timestamp",
                  "4096 64 half none -1 40 1 1 N/A 50 1 1 N/A 2025-11-02 10:11:12")}) {
    const auto read =
        ReadNcclLog("all_gather_perf_mpi\n" + Ranks(1, 4) + "0: # " + head + "\n0:   " + row + "\n");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_DOUBLE_EQ(read->front().bytes_per_s(0).value(), 4096 / 40e-6);
  }
}

TEST(NcclLogTest, ListsOfRanksEndThoseBefore) {
  // One that crashed, then fewer ranks.
  const auto read = ReadNcclLog("all_gather_perf\n" + Ranks(2, 8) + "Aborted\n" + Gathers(1, 8));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->front().nodes(), 1u);
  // A second list without a name is of nobody knows which test.
  std::string unnamed = Gathers(1, 4);
  unnamed.erase(0, unnamed.find('\n') + 1);
  EXPECT_THAT(std::string(ReadNcclLog(Gathers(1, 8) + unnamed).status().message()),
              HasSubstr("does not say which test"));
}

TEST(NcclLogTest, SeveralTestsInOneLog) {
  std::string reductions = Gathers(2, 8);
  reductions.replace(reductions.find("all_gather"), 10, "all_reduce");
  std::string others = Gathers(1, 4);
  others.replace(others.find("all_gather"), 10, "alltoall");
  const auto read = ReadNcclLog(Gathers(1, 8) + reductions + others);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 2u);
  for (const Target::Collective& one : *read)
    EXPECT_EQ(one.nodes(), one.opcode() == proto::ALL_GATHER ? 1u : 2u);
}

TEST(NcclLogTest, WhatCannotBeReadIsNamed) {
  const std::string row = " 1024 64 float none -1 30.0 0.1 0.1 0 31.0 0.1 0.1 0\n", head = kHead;
  const auto error = [](const std::string& text) {
    return std::string(ReadNcclLog(text).status().message());
  };
  EXPECT_THAT(error(Ranks(1, 2) + head + row), HasSubstr("line 7: does not say which test"));
  EXPECT_THAT(error("all_gather_perf\n" + head + row),
              HasSubstr("line 5: has a table without a list of ranks"));
  EXPECT_THAT(
      error("all_gather_perf\n" + Ranks(1, 2) + "# Rank 2 Group 0 Pid 1 on other device 0\n" + head + row),
      HasSubstr("unevenly"));
  EXPECT_THAT(
      error("all_gather_perf\n" + Ranks(1, 2) + "# Rank 2 Group 1 Pid 1 on host-0 device 0\n" + head + row),
      HasSubstr("several groups"));
  EXPECT_THAT(
      error("all_gather_perf\n" + Ranks(1, 2) + head + " 1024 64 float none -1 -3 0 0 0 31.0 0 0 0\n"),
      HasSubstr("'-3' is no time"));
  EXPECT_THAT(
      error("all_gather_perf\n" + Ranks(1, 2) + head + " 1024 64 float none -1 0.00 0 0 0 31.0 0 0 0\n"),
      HasSubstr("takes no time"));
  EXPECT_THAT(error("all_gather_perf\n" + Ranks(1, 2) +
                    "# size count type redop root cputime algbw busbw #wrong\n" + row),
              HasSubstr("times of the host"));
  const std::string begin = "all_gather_perf\n" + Ranks(1, 2) + head;
  EXPECT_THAT(error(begin + " 9000000000000000 2097152 float none -1 39.8 210.8 184.4 0\n"),
              HasSubstr("line 8: '9000000000000000' is no size of a message"));
  EXPECT_THAT(error(begin + " 8388608 2097152 float none -1 1e-290 210.8 184.4 0\n"),
              HasSubstr("line 8: 8.38861e+06 bytes in 1e-290 us are more than a link can carry"));
  EXPECT_THAT(error(begin + " 8388608 2097152 float none -1 39.8 210.8 184.4 7\n"),
              HasSubstr("line 8: has 7 wrong elements"));
  EXPECT_THAT(error("all_gather_perf\n" + Ranks(1, 2048) + head + row),
              HasSubstr("has 2048 ranks on a node"));
  EXPECT_THAT(error("Segmentation fault\n"), HasSubstr("has no table"));
  EXPECT_THAT(error("all_gather_perf\n" + Ranks(1, 1) + head + row), HasSubstr("has no table"));
  std::string many = "all_gather_perf\n" + Ranks(1, 2) + head;
  for (int i = 1; i < 400; ++i) many += " " + std::to_string(1024 * i) + row.substr(5);
  EXPECT_THAT(error(many), HasSubstr("399 sizes"));
}

TEST(TakeCollectivesTest, ReplacesThoseOfTheSameGroupsAndDerivesLinks) {
  Target target;
  target.mutable_network()->set_step_s(1e-6);
  TakeCollectives(*ReadNcclLog(Gathers(1, 8)), target);
  AddPoint(8 << 20, 0.5, *target.mutable_network_ramp());
  AddPoint(64 << 20, 0.9, *target.mutable_network_ramp());
  TakeCollectives(*ReadNcclLog(Gathers(4, 8) + Gathers(1, 8)), target);
  EXPECT_EQ(target.collectives_size(), 2);
  EXPECT_EQ(target.ranks_per_node(), 8u);
  EXPECT_NEAR(target.node().bytes_per_s(), 1073741824 / 3980e-6 * 7 / 8, 1e8);
  EXPECT_NEAR(target.node().latency_s(), 20e-6, 1e-6);
  EXPECT_NEAR(target.network().latency_s(), 17e-6, 1e-6) << "three steps between nodes take the rest";
  // A group that the log does not have, of the same nodes: by the links, the same time.
  Target links = target;
  links.clear_collectives();
  const NodeLayout layout{.ranks = 32, .nodes = 4, .most_on_node = 8, .least_on_node = 8};
  const double by_links = CollectiveSeconds(links, proto::ALL_GATHER, 1073741824, layout);
  EXPECT_NEAR(by_links, 4000e-6, 1e-9);
  EXPECT_NEAR(CollectiveSeconds(links, proto::ALL_GATHER, 65536, layout), 20e-6, 1e-9);
}

}  // namespace
}  // namespace ft
