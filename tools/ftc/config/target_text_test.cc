// What runtime/plan writes, read again.
#include "runtime/plan/target_text.h"

#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "runtime/targets/shipped_targets.h"
#include "tools/ftc/config/target_file.h"

namespace ftc {
namespace {

using ft::Target;

void ExpectReadAgain(const Target& target, const ft::TargetNotes& notes) {
  const std::string text = ft::TargetText(target, notes);
  const absl::StatusOr<Target> read = ParseTarget(text, "machine.yaml", "machine");
  ASSERT_TRUE(read.ok()) << read.status() << "\n" << text;
  google::protobuf::util::DefaultFieldComparator nine_digits;
  nine_digits.set_float_comparison(google::protobuf::util::DefaultFieldComparator::APPROXIMATE);
  nine_digits.SetDefaultFractionAndMargin(1e-8, 0);
  google::protobuf::util::MessageDifferencer differencer;
  differencer.set_field_comparator(&nine_digits);
  // Collectives and overlaps are found by kind, whatever their order.
  differencer.set_repeated_field_comparison(google::protobuf::util::MessageDifferencer::AS_SET);
  std::string differences;
  differencer.ReportDifferencesToString(&differences);
  EXPECT_TRUE(differencer.Compare(target, *read)) << differences << "\n" << text;
}

TEST(TargetTextTest, ShippedMachinesAreWhatTheyWere) {
  for (const std::string& name : ft::TargetNames()) {
    SCOPED_TRACE(name);
    ExpectReadAgain(*ft::FindTarget(name), {.source = "a \"test\" of \\ all", .kernels = {}});
  }
}

TEST(TargetTextTest, AMeasuredMachineKeepsHowItWasMeasuredAndItsKernels) {
  Target target = *ft::FindTarget("h100-ib");
  Target::Measured& measured = *target.mutable_measured();
  measured.set_ranks_on_node(2);
  measured.set_threads(3);
  measured.set_instruction_set("x86-64-v4");
  measured.add_dtypes(ft::proto::F32);
  measured.add_dtypes(ft::proto::BF16);
  measured.set_drift(0.01);
  measured.set_products(0.02);
  measured.set_attention(0.03);
  measured.set_memory(0.04);
  measured.set_collectives(0.05);
  measured.set_copies(0.06);
  measured.set_kernels(0.07);
  measured.set_timed_ranks_on_node(1);
  measured.set_timed_threads(4);
  measured.set_timed_instruction_set("x86-64-v3");
  for (const uint64_t key : {uint64_t{0x12e4}, uint64_t{1} << 63}) {
    Target::TimedKernel* kernel = target.add_timed_kernels();
    kernel->set_key(key);
    kernel->set_seconds(1.5e-5);
    kernel->set_share(key == 0x12e4 ? 0.5 : 1);
    kernel->set_spread(0.02);
  }
  ExpectReadAgain(target, {.source = "", .kernels = {{0x12e4, "matmul f32[4,8] f32[8,4] -> f32[4,4]"}}});
}

TEST(TargetTextTest, AsManyKernelsAsATargetTakesAreReadAgain) {
  Target target = *ft::FindTarget("h100-ib");
  ft::TargetNotes notes;
  const auto add = [&](int i) {
    Target::TimedKernel* kernel = target.add_timed_kernels();
    kernel->set_key((static_cast<uint64_t>(i) + 1) << 48);
    kernel->set_seconds(1.23456789e-5 * (i + 1));
    kernel->set_share(1.0 / 3);
    kernel->set_spread(0.0123456789);
    notes.kernels[kernel->key()] = "cluster " + std::string(1000, 'x') + "\n";
  };
  for (int i = 0; target.ByteSizeLong() <= ft::kMostTargetBytes; ++i) add(i);
  target.mutable_timed_kernels()->RemoveLast();
  ASSERT_TRUE(ft::VerifyTarget(target).ok()) << ft::VerifyTarget(target);
  EXPECT_GT(target.timed_kernels_size(), 1300);
  const std::string text = ft::TargetText(target, notes);
  EXPECT_LE(text.size(), ft::kMostTargetTextBytes);
  const absl::StatusOr<Target> read = ParseTarget(text, "machine.yaml", "machine");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->timed_kernels_size(), target.timed_kernels_size());
  const Target::TimedKernel& last = read->timed_kernels(read->timed_kernels_size() - 1);
  EXPECT_EQ(last.key(), target.timed_kernels(read->timed_kernels_size() - 1).key());
  EXPECT_NEAR(last.seconds(), 1.23456789e-5 * read->timed_kernels_size(), 1e-9);
}

TEST(TargetTextTest, AMistakeInWhatWasMeasuredIsOneLine) {
  const std::string good = ft::TargetText(*ft::FindTarget("cpu"), {});
  const std::pair<const char*, const char*> cases[] = {
      {"measured: {ranks: 0, threads: 1}",
       "'measured.ranks': '0' is not a whole number of at least 1 and at most 1024"},
      {"measured: {ranks: 2, threads: 1, dtypes: fp8}",
       "'measured.dtypes': 'fp8' is none of fp32, bf16, fp16"},
      {"measured: {ranks: 2, threads: 1, spread: {products: -1}}",
       "'measured.spread.products': '-1' is not a number of at least 0 and at most 10"},
      {"measured: {ranks: 2, threads: 1, host: here}", "unknown key 'measured.host'"},
      {"measured: {threads: 1}", "'measured.ranks' is missing"},
      {"measured: {ranks: 1, threads: 1, timed: {ranks: 2}}", "'measured.timed.threads' is missing"},
      {"measured: {ranks: 1, threads: 1, timed: {instruction_set: x}}", "'measured.timed.ranks' is missing"},
  };
  for (const auto& [line, message] : cases) {
    const absl::StatusOr<Target> read = ParseTarget(good + line + "\n", "m.yaml", "m");
    ASSERT_FALSE(read.ok()) << line;
    EXPECT_NE(std::string(read.status().message()).find(message), std::string::npos) << read.status();
  }
  std::string timed = good;
  timed.insert(timed.find("  latency_us"), "  timed: {xyz: {us: 1}}\n");
  EXPECT_NE(std::string(ParseTarget(timed, "m.yaml", "m").status().message())
                .find("'xyz' is not 16 hexadecimal digits"),
            std::string::npos)
      << ParseTarget(timed, "m.yaml", "m").status();
}

}  // namespace
}  // namespace ftc
