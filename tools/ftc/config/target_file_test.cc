#include "tools/ftc/config/target_file.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "runtime/base/testing/temp_folder.h"

namespace ftc {
namespace {

constexpr char kGood[] =
    "# a comment\n"                                                  // 1
    "device: cuda\n"                                                 // 2
    "ranks_per_node: 4\n"                                            // 3
    "memory:\n"                                                      // 4
    "  capacity_mib: 1024\n"                                         // 5
    "  gigabytes_per_s: 1500\n"                                      // 6
    "  source: a data sheet\n"                                       // 7
    "compute:\n"                                                     // 8
    "  fp32: {tflops: 10.5}\n"                                       // 9
    "  bf16: {tflops: 100, peak_tflops: 125}\n"                      // 10
    "  fp16: {tflops: 50}\n"                                         // 11
    "kernels: {latency_us: 2.5}\n"                                   // 12
    "links:\n"                                                       // 13
    "  node: {gigabytes_per_s: 200, latency_us: 5, step_us: 1.5}\n"  // 14
    "  network: {gigabytes_per_s: 12.5, latency_us: 20}\n"           // 15
    "copies: {gigabytes_per_s: 25, latency_us: 0}\n"                 // 16
    "version: 1\n";                                                  // 17

std::string Edited(const std::string& from, const std::string& to) {
  const std::string text = absl::StrReplaceAll(kGood, {{from, to}});
  EXPECT_NE(text, kGood) << from;
  return text;
}

// The same, with all that a file may have, in line 18.
constexpr char kParts[] =
    "<<: {compute: {fp32: {tflops: 10}, bf16: {tflops: 100}, fp16: {tflops: 50}, sustained: 0.9, products: "
    "{multiprocessors: 132, tile_rows: 128, tile_columns: 256, half_k: 100}}, attention: {source: a paper, "
    "128: {forward: "
    "{4096: 368, 512: 309}, backward: {512: 214}}, 64: {forward: {512: 1}, backward: {512: 1}}}, "
    "collectives: {all_gather: "
    "{1x8: {1: 34, 4: 89}}}, overlap: {reduce_scatter: {kernels: 0.25, transfer: 0.1, multiprocessors: 16}}, "
    "stack: "
    "{launch_us: 5, launches: 2, elementwise_bytes: 3, update_bytes: 4, logit_bytes: 12}, jitter: {points: "
    "{1: 0, 64: "
    "0.03}}, assumptions: {head: tied}, memory: {gigabytes_per_s: 1500, points: {0.5: 100, 64: 1400}}, "
    "links: {node: "
    "{gigabytes_per_s: 200, latency_us: 5, ramp: {8: 0.68, 32: 0.87}}, network: {gigabytes_per_s: 12.5, "
    "latency_us: 20}}}\n";

std::string WithParts(const std::string& from = "", const std::string& to = "") {
  // What the parts have, too, is theirs.
  const std::string text = absl::StrCat("# 1\ndevice: cuda\nranks_per_node: 4\n#\n#\n#\n#\n#\n#\n#\n#\n",
                                        "kernels: {latency_us: 2.5}\n#\n#\n#\ncopies: {gigabytes_per_s: 25, "
                                        "latency_us: 0}\nversion: 1\n",
                                        kParts);
  if (from.empty()) return text;
  const std::string edited = absl::StrReplaceAll(text, {{from, to}});
  EXPECT_NE(edited, text) << from;
  return edited;
}

TEST(TargetFileTest, PartsOfAMachineComeInTheirUnits) {
  const absl::StatusOr<ft::Target> target = ParseTarget(WithParts(), "my.yaml", "my");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_DOUBLE_EQ(target->sustained(), 0.9);
  EXPECT_EQ(target->products().multiprocessors(), 132u);
  EXPECT_EQ(target->products().tile_columns(), 256u);
  EXPECT_DOUBLE_EQ(target->products().half_k(), 100);
  ASSERT_EQ(target->attention_size(), 2);
  EXPECT_EQ(target->attention(0).head_size(), 64u);
  ASSERT_EQ(target->attention(1).forward_size(), 2);
  EXPECT_EQ(target->attention(1).forward(0).at(), 512) << "in order";
  EXPECT_DOUBLE_EQ(target->attention(1).forward(1).value(), 3.68e14);
  EXPECT_DOUBLE_EQ(target->attention(1).backward(0).value(), 2.14e14);
  ASSERT_EQ(target->memory_size(), 2);
  EXPECT_EQ(target->memory(0).at(), 524288);
  EXPECT_DOUBLE_EQ(target->memory(0).value(), 1e11);
  ASSERT_EQ(target->collectives_size(), 1);
  EXPECT_EQ(target->collectives(0).opcode(), ft::proto::ALL_GATHER);
  EXPECT_EQ(target->collectives(0).nodes(), 1u);
  EXPECT_EQ(target->collectives(0).ranks_on_node(), 8u);
  EXPECT_DOUBLE_EQ(target->collectives(0).bytes_per_s(1).at(), 4 << 20);
  EXPECT_DOUBLE_EQ(target->collectives(0).bytes_per_s(1).value(), 8.9e10);
  ASSERT_EQ(target->overlaps_size(), 1);
  EXPECT_EQ(target->overlaps(0).opcode(), ft::proto::REDUCE_SCATTER);
  EXPECT_DOUBLE_EQ(target->overlaps(0).kernels(), 0.25);
  EXPECT_DOUBLE_EQ(target->overlaps(0).transfer(), 0.1);
  EXPECT_EQ(target->overlaps(0).multiprocessors(), 16u);
  EXPECT_DOUBLE_EQ(target->node_ramp(0).at(), 8 << 20);
  EXPECT_DOUBLE_EQ(target->node_ramp(1).value(), 0.87);
  EXPECT_EQ(target->network_ramp_size(), 0);
  EXPECT_DOUBLE_EQ(target->stack().launch_s(), 5e-6);
  EXPECT_DOUBLE_EQ(target->stack().launches(), 2);
  EXPECT_DOUBLE_EQ(target->stack().elementwise_bytes(), 3);
  EXPECT_DOUBLE_EQ(target->stack().update_bytes(), 4);
  EXPECT_DOUBLE_EQ(target->stack().logit_bytes(), 12);
  ASSERT_EQ(target->jitter_size(), 2);
  EXPECT_EQ(target->jitter(1).at(), 64);
  EXPECT_DOUBLE_EQ(target->jitter(1).value(), 0.03);
}

TEST(TargetFileTest, FiguresComeInTheUnitsThatTheirKeysName) {
  const absl::StatusOr<ft::Target> target = ParseTarget(kGood, "my.yaml", "my");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->name(), "my");
  EXPECT_TRUE(target->cuda());
  EXPECT_EQ(target->ranks_per_node(), 4u);
  EXPECT_EQ(target->memory_bytes(), uint64_t{1} << 30);
  EXPECT_DOUBLE_EQ(target->memory_bytes_per_s(), 1.5e12);
  EXPECT_DOUBLE_EQ(target->f32().reached(), 1.05e13);
  EXPECT_EQ(target->f32().peak(), 0);
  EXPECT_DOUBLE_EQ(target->bf16().reached(), 1e14);
  EXPECT_DOUBLE_EQ(target->bf16().peak(), 1.25e14);
  EXPECT_DOUBLE_EQ(target->f16().reached(), 5e13);
  EXPECT_DOUBLE_EQ(target->kernel_latency_s(), 2.5e-6);
  EXPECT_DOUBLE_EQ(target->node().bytes_per_s(), 2e11);
  EXPECT_DOUBLE_EQ(target->node().latency_s(), 5e-6);
  EXPECT_DOUBLE_EQ(target->node().step_s(), 1.5e-6);
  EXPECT_DOUBLE_EQ(target->network().bytes_per_s(), 1.25e10);
  EXPECT_EQ(target->network().step_s(), 0);
  EXPECT_DOUBLE_EQ(target->copies().bytes_per_s(), 2.5e10);
  EXPECT_EQ(target->copies().latency_s(), 0);
  EXPECT_EQ(target->beside_bytes(), 0u);
  EXPECT_EQ(target->host_memory_bytes_per_s(), 0);
  const absl::StatusOr<ft::Target> known =
      ParseTarget(Edited("memory:\n", "memory:\n  host_gigabytes_per_s: 40\n"), "my.yaml", "my");
  ASSERT_TRUE(known.ok()) << known.status();
  EXPECT_DOUBLE_EQ(known->host_memory_bytes_per_s(), 4e10);
  const absl::StatusOr<ft::Target> announcing = ParseTarget(
      Edited("  capacity_mib: 1024\n", "  beside_mib: 3\n  communicator_mib: 0\n"), "my.yaml", "my");
  ASSERT_TRUE(announcing.ok()) << announcing.status();
  EXPECT_EQ(announcing->beside_bytes(), uint64_t{3} << 20);
  EXPECT_EQ(announcing->communicator_bytes(), 0u);
  EXPECT_EQ(ParseTarget("name: other\n" + std::string(kGood), "my.yaml", "my")->name(), "other");
}

TEST(TargetFileTest, MistakesAreOneLineWithThePlace) {
  const std::pair<std::string, std::string> cases[] = {
      {Edited("  gigabytes_per_s: 1500", "  gigabyte_per_s: 1500"),
       "my.yaml:6: unknown key 'memory.gigabyte_per_s', did you mean 'memory.gigabytes_per_s'?"},
      {Edited("  node: {", "  nod: {"), "my.yaml:14: unknown key 'links.nod', did you mean 'links.node'?"},
      {"latency_us: 3\n" + std::string(kGood),
       "my.yaml:1: unknown key 'latency_us', did you mean 'kernels.latency_us'?"},
      {"frobnication: 3\n" + std::string(kGood),
       "my.yaml:1: unknown key 'frobnication'; docs/targets.md has all keys"},
      {Edited("tflops: 10.5", "tflops: fast"),
       "my.yaml:9: 'compute.fp32.tflops': 'fast' is not a number of at least 1e-06 and at most 100000"},
      {Edited("tflops: 10.5", "tflops: 0"),
       "my.yaml:9: 'compute.fp32.tflops': '0' is not a number of at least 1e-06 and at most 100000"},
      {Edited("tflops: 10.5", "tflops: -1"),
       "my.yaml:9: 'compute.fp32.tflops': '-1' is not a number of at least 1e-06 and at most 100000"},
      {Edited("tflops: 10.5", "tflops: .inf"),
       "my.yaml:9: 'compute.fp32.tflops': '.inf' is not a number of at least 1e-06 and at most 100000"},
      {Edited("tflops: 10.5", "tflops: inf"),
       "my.yaml:9: 'compute.fp32.tflops': 'inf' is not a number of at least 1e-06 and at most 100000"},
      {Edited("tflops: 10.5", "tflops: nan"),
       "my.yaml:9: 'compute.fp32.tflops': 'nan' is not a number of at least 1e-06 and at most 100000"},
      {Edited("tflops: 10.5", "tflops: 1e300"),
       "my.yaml:9: 'compute.fp32.tflops': '1e300' is not a number of at least 1e-06 and at most 100000"},
      {Edited("{tflops: 10.5}", "[1, 2]"), "my.yaml:9: 'compute.fp32' wants keys of its own"},
      {Edited("tflops: 10.5", "tflops: {a: 1}"), "my.yaml:9: 'compute.fp32.tflops' wants one value"},
      {Edited("tflops: 10.5", "tflops: [1, 2]"), "my.yaml:9: 'compute.fp32.tflops' wants one value"},
      {Edited("  fp32: {tflops: 10.5}\n", ""), "my.yaml:8: 'compute.fp32.tflops' is missing"},
      {Edited("device: cuda\n", ""), "my.yaml:1: 'device' is missing"},
      {Edited("cuda", "gpu"), "my.yaml:2: 'device': 'gpu' is neither cpu nor cuda"},
      {Edited("ranks_per_node: 4", "ranks_per_node: 4.5"),
       "my.yaml:3: 'ranks_per_node': '4.5' is not a whole number of at least 1 and at most 1024"},
      {Edited("latency_us: 0}", "latency_us: -0.5}"),
       "my.yaml:16: 'copies.latency_us': '-0.5' is not a number of at least 0"},
      {Edited("tflops: 10.5", "tflops: 1e-12"),
       "my.yaml:9: 'compute.fp32.tflops': '1e-12' is not a number of"},
      {Edited("gigabytes_per_s: 12.5", "gigabytes_per_s: 1e14"),
       "my.yaml:15: 'links.network.gigabytes_per_s': '1e14' is not a number of"},
      {Edited("peak_tflops: 125", "peak_tflops: 99"),
       "my.yaml:10: 'compute.bf16.peak_tflops' is less than 'compute.bf16.tflops'"},
      {"name: ''\n" + std::string(kGood), "my.yaml:1: 'name': wants 1 to 256 bytes, not 0"},
      {"name: " + std::string(257, 'x') + "\n" + kGood, "my.yaml:1: 'name': wants 1 to 256 bytes, not 257"},
      {"name: \"a\\e[2J\"\n" + std::string(kGood),
       "my.yaml:1: 'name': 'a\\x1b[2J' has control characters or ends of lines, which names cannot have"},
      {"name: \"a\\nb\"\n" + std::string(kGood), "my.yaml:1: 'name': 'a\\nb' has control characters"},
      {std::string(kGood) + "measured: {ranks: 1, threads: 1, instruction_set: \"a\\tb\"}\n",
       "my.yaml:18: 'measured.instruction_set': 'a\\x09b' has control characters"},
      {Edited("latency_us: 0}", "latency_us: 0, step_us: 1}"),
       "my.yaml:16: unknown key 'copies.step_us', did you mean"},
      {"device: cpu\n" + std::string(kGood), "my.yaml:3:1: 'device' is given twice, first in line 1"},
      {"", "my.yaml:1: 'version' is missing"},
      {Edited("version: 1\n", ""), "my.yaml:1: 'version' is missing"},
      {Edited("version: 1", "version: 2"), "my.yaml:17: 'version': '2' is not 1, the one version"},
      {WithParts("half_k: 100", "half_k: -1"),
       "my.yaml:18: 'compute.products.half_k': '-1' is not a number of"},
      {WithParts("512: 309", "512: 0"), "my.yaml:18: 'attention.128.forward.512': '0' is not a number of"},
      {WithParts("512: 309", "long: 309"),
       "my.yaml:18: 'attention.128.forward.long': the key 'long' is not a number"},
      {WithParts("128: {forward", "big: {forward"),
       "my.yaml:18: 'attention.big.forward.4096': 'big' is not a whole"},
      {WithParts("backward", "backwards"), "my.yaml:18: unknown key 'attention.128.backwards"},
      {WithParts("1x8: {1: 34", "8: {1: 34"),
       "my.yaml:18: 'collectives.all_gather.8.1': '8' is no group such as 1x8"},
      {WithParts("1x8: {1: 34", "01x8: {1: 34"),
       "my.yaml:18: 'collectives.all_gather.01x8.1': the key '01x8' is written '1x8'"},
      {WithParts("128: {forward", "0128: {forward"),
       "my.yaml:18: 'attention.0128.forward.4096': the key '0128' is written '128'"},
      {Edited("us: 2.5}", "us: 2.5, timed: {\"0123456789abcdeF\": {us: 1}}}"),
       "my.yaml:12: 'kernels.timed.0123456789abcdeF.us': the key '0123456789abcdeF' is written "
       "'0123456789abcdef'"},
      {WithParts("all_gather: {1x8", "gather: {1x8"), "my.yaml:18: unknown key 'collectives.gather"},
      {WithParts("kernels: 0.25", "kernels: 11"),
       "my.yaml:18: 'overlap.reduce_scatter.kernels': '11' is not"},
      {WithParts("{8: 0.68", "{8: 1.68"), "my.yaml:18: 'links.node.ramp.8': '1.68' is not"},
      {WithParts("sustained: 0.9", "sustained: 1.1"), "my.yaml:18: 'compute.sustained': '1.1' is not"},
      {WithParts("launch_us: 5", "launch: 5"), "my.yaml:18: unknown key 'stack.launch'"},
      {WithParts(", backward: {512: 214}", ""),
       "my.yaml:1: a target with attention.128 in one direction alone"},
      {WithParts("{1: 34, 4: 89}", "{1: 34, 1.0: 89}"), "my.yaml:1: a target whose points of collectives"},
      {std::string(kGood) + "measured: {ranks: 2}\n", "my.yaml:18: 'measured.threads' is missing"},
      {std::string(kGood) + "measured: {drift: 0.1}\n", "my.yaml:18: 'measured.ranks' is missing"},
      {Edited("us: 2.5}", "us: 2.5, timed: {\"0123456789abcdef\": {spread: 0.1}}}"),
       "my.yaml:12: 'kernels.timed.0123456789abcdef.us' is missing"},
      {"- a\n- b\n", "my.yaml:1:1: expected keys and values"},
      {"{", "my.yaml:"},
  };
  for (const auto& [text, message] : cases) {
    const absl::Status status = ParseTarget(text, "my.yaml", "my").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_EQ(std::string(status.message()).rfind(message, 0), 0u)
        << status.message() << "\nexpected " << message;
    EXPECT_EQ(std::string(status.message()).find('\n'), std::string::npos);
  }
}

// What the keys take one by one, a target takes together.
TEST(TargetFileTest, TheEndsOfWhatFiguresMayBeArePossible) {
  for (const char* tflops : {"1e-6", "1e5"}) {
    EXPECT_TRUE(ParseTarget(Edited("tflops: 10.5", std::string("tflops: ") + tflops), "my.yaml", "my").ok());
  }
  for (const char* rate : {"1e-9", "1e6"}) {
    const std::string text = Edited("gigabytes_per_s: 12.5", std::string("gigabytes_per_s: ") + rate);
    EXPECT_TRUE(ParseTarget(text, "my.yaml", "my").ok());
  }
  EXPECT_TRUE(ParseTarget(Edited("latency_us: 20}", "latency_us: 1e6}"), "my.yaml", "my").ok());
  EXPECT_TRUE(ParseTarget(Edited("capacity_mib: 1024", "capacity_mib: 1e9"), "my.yaml", "my").ok());
  EXPECT_TRUE(ParseTarget(Edited("capacity_mib: 1024", "beside_mib: 1e9"), "my.yaml", "my").ok());
}

TEST(TargetFileTest, AFileIsNamedAsItIsCalled) {
  const ft::TempFolder folder;
  const absl::StatusOr<ft::Target> target = ReadTarget(folder.Write("my.machine.yaml", kGood));
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->name(), "my.machine");
  EXPECT_FALSE(ReadTarget(folder.Path("absent.yaml")).ok());
  EXPECT_TRUE(IsTargetFile("my.yaml"));
  EXPECT_TRUE(IsTargetFile("a/b"));
  EXPECT_TRUE(IsTargetFile("x.yml"));
  EXPECT_FALSE(IsTargetFile("h100-ib"));
}

}  // namespace
}  // namespace ftc
