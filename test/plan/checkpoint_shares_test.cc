// Who writes which bytes of a checkpoint of a large model on hundreds of ranks: found by each rank alone, in
// no time, and all bytes exactly once.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/state/file_layout.h"
#include "runtime/checkpoint/state/plan_state.h"
#include "runtime/checkpoint/state/share.h"
#include "runtime/plan/mesh.h"
#include "test/support/compile_plan.h"

namespace ft {
namespace {

// Of this thread: other work on the machine does not count.
double ProcessorSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

constexpr uint64_t kParameters = 70'553'706'496;
constexpr uint64_t kBytesEach = 4 + 4 + 4;  // master weight and both moments, in fp32
constexpr int kRanks = 512;

struct Case {
  const char* name;
  const char* strategy;
  Mesh mesh;
};

proto::Plan Compile(const Case& test) {
  return CompilePlan("llama3-70b", "", [&](compiler::CompileOptions& options) {
    options.strategy = test.strategy;
    options.paramDtype = "bf16";
  });
}

struct Written {
  uint32_t file = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  auto operator<=>(const Written&) const = default;
};

// Each file from its first byte to its last, without a gap and without anything twice.
void ExpectWhole(const FileLayout& layout, std::vector<Written>& written) {
  std::sort(written.begin(), written.end());
  size_t next = 0;
  for (int f = 0; f < layout.num_files(); ++f) {
    uint64_t end = 0;
    for (; next < written.size() && written[next].file == static_cast<uint32_t>(f); ++next) {
      ASSERT_EQ(written[next].offset, end) << layout.FileName(f);
      end += written[next].bytes;
    }
    ASSERT_EQ(end, layout.File(f).bytes) << layout.FileName(f);
  }
  EXPECT_EQ(next, written.size());
}

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

class CheckpointSharesTest : public testing::TestWithParam<Case> {
 protected:
  static absl::StatusOr<Share> ShareOf(const proto::Plan& plan, CheckpointType type, int rank) {
    FT_ASSIGN_OR_RETURN(StateLayout state, StateOfPlan(plan, GetParam().mesh));
    FT_ASSIGN_OR_RETURN(const FileLayout layout, FileLayout::Create(std::move(state), type));
    return Share(layout, rank);
  }
};

TEST_P(CheckpointSharesTest, AllBytesOnceAndEachRankByItselfWithinASecond) {
  const proto::Plan plan = Compile(GetParam());
  for (const CheckpointType type : {CheckpointType::kFull, CheckpointType::kSharded}) {
    SCOPED_TRACE(Name(type));
    double slowest = 0;
    for (const int rank : {0, 1, kRanks / 2 - 1, kRanks - 1}) {
      // What a rank does before its first save, from the plan alone.
      const double begin = ProcessorSeconds();
      ASSERT_TRUE(ShareOf(plan, type, rank).ok());
      slowest = std::max(slowest, ProcessorSeconds() - begin);
    }
    EXPECT_LT(slowest, 1.0);
    std::printf("%s: of %d ranks one finds its share in %.1f ms\n", Name(type).data(), kRanks, slowest * 1e3);

    const FileLayout layout = FileLayout::Create(StateOfPlan(plan, GetParam().mesh).value(), type).value();
    std::vector<Written> written;
    uint64_t state_bytes = 0, largest = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
      const Share share(layout, rank);
      state_bytes += share.state_bytes();
      largest = std::max(largest, share.state_bytes());
      for (const Share::Piece& piece : share.pieces()) {
        if (!piece.head.empty()) written.push_back({piece.file, 0, piece.head.size()});
        for (const auto& [extent, sent] : piece.parts)
          written.push_back({piece.file, extent.offset, extent.bytes});
      }
    }
    ExpectWhole(layout, written);
    EXPECT_EQ(state_bytes, kParameters * kBytesEach);
    EXPECT_EQ(largest, LargestShare(layout.state()));
    EXPECT_LT(largest, kParameters * kBytesEach / kRanks * 101 / 100) << "the ranks share the work";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Llama70b, CheckpointSharesTest,
    testing::Values(Case{"full_shard", "full_shard", {.replica = 1, .shard = kRanks}},
                    Case{"hybrid_shard", "hybrid_shard", {.replica = kRanks / 8, .shard = 8}},
                    Case{"zero1", "zero1", {.replica = 1, .shard = kRanks}},
                    Case{"no_shard", "no_shard", {.replica = kRanks, .shard = 1}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ft
