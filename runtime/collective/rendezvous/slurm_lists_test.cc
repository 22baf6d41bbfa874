#include "runtime/collective/rendezvous/slurm_lists.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_join.h"

namespace ft {
namespace {

TEST(SlurmLists, HostLists) {
  const std::pair<std::string, std::string> lists[] = {
      {"localhost", "localhost"},
      {"n[0-1]", "n0 n1"},
      {"node[01-03,7],gpu-a[1-2]b", "node01 node02 node03 node7 gpu-a1b gpu-a2b"},
      {"b,a", "b a"},  // in the order of the list
      {"n[9-11]", "n9 n10 n11"},
      {"n[009-011]", "n009 n010 n011"},
      {"n[08]", "n08"},
      {"rack[0-1]n[1-2].cluster", "rack0n1.cluster rack0n2.cluster rack1n1.cluster rack1n2.cluster"},
      {"[1-2]x", "1x 2x"},
      {"a-b-c[1,3],d", "a-b-c1 a-b-c3 d"}};
  for (const auto& [list, names] : lists) {
    const auto hosts = ExpandHostList(list);
    ASSERT_TRUE(hosts.ok()) << list << ": " << hosts.status();
    EXPECT_EQ(absl::StrJoin(*hosts, " "), names);
  }
  EXPECT_EQ(ExpandHostList("n[0-65535]")->size(), 65536u);
}

TEST(SlurmLists, HostListsThatAreNone) {
  const std::pair<std::string, std::string> lists[] = {{"", "empty name"},
                                                       {"a,,b", "empty name"},
                                                       {"a,", "empty name"},
                                                       {"n[1-2", "'[' without ']'"},
                                                       {"n1-2]", "']' without '['"},
                                                       {"n[]", "''"},
                                                       {"n[1-]", "''"},
                                                       {"n[-2]", "''"},
                                                       {"n[1,]", "''"},
                                                       {"n[2-1]", "'2-1', which runs backwards"},
                                                       {"n[a-b]", "'a'"},
                                                       {"n[[1]]", "'[1'"},
                                                       {"n[1-2-3]", "'2-3'"},
                                                       {"n[0-65536]", "more than 65536"},
                                                       {"n[0-999999999]", "more than 65536"},
                                                       {"n[99999999999999999999]", "a number"},
                                                       {"n[0-300]m[0-300]", "more than 65536"},
                                                       {"n[0-40000],m[0-40000]", "more than 65536"},
                                                       {"a b", "character"},
                                                       {"a\nb", "character"}};
  for (const auto& [list, words] : lists) {
    const auto hosts = ExpandHostList(list);
    ASSERT_TRUE(absl::IsInvalidArgument(hosts.status())) << list;
    EXPECT_NE(hosts.status().message().find(words), absl::string_view::npos)
        << list << ": " << hosts.status();
  }
  // Many brackets must not take long or much.
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "[0-1]";
  EXPECT_FALSE(ExpandHostList(many).ok());
  std::string single;
  for (int i = 0; i < 5000; ++i) single += "[7]";
  EXPECT_FALSE(ExpandHostList(single).ok());
  EXPECT_FALSE(ExpandHostList("n[0-65535]" + std::string(100000, 'x')).ok());
}

TEST(SlurmLists, TasksPerNode) {
  const std::pair<std::string, std::vector<int>> lists[] = {
      {"3", {3}}, {"4(x2),3", {4, 4, 3}}, {"2,1", {2, 1}}, {"1(x3)", {1, 1, 1}}, {"8(x1),2(x2)", {8, 2, 2}}};
  for (const auto& [counts, tasks] : lists) {
    const auto expanded = ExpandTasksPerNode(counts);
    ASSERT_TRUE(expanded.ok()) << counts << ": " << expanded.status();
    EXPECT_EQ(*expanded, tasks) << counts;
  }
  for (const char* counts : {"", "a", "4(x2", "4(x)", "4(xa)", "(x2)", "4,", "-1", "4(x65537)",
                             "4(x99999999999)", "99999999999", "4(x2)3", "1(x60000),1(x60000)"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ExpandTasksPerNode(counts).status())) << counts;
  }
}

}  // namespace
}  // namespace ft
