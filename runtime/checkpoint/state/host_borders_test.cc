#include "runtime/checkpoint/state/host_borders.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/base/testing/temp_folder.h"
#include "runtime/checkpoint/state/share.h"
#include "runtime/checkpoint/state/testing/made_state.h"

namespace ft {
namespace {

using Arrangement = std::tuple<Mesh, std::vector<int>, uint64_t>;  // hosts, bytes of a page

class HostBordersTest : public ::testing::TestWithParam<Arrangement> {
 protected:
  StateLayout State() const { return made::MadeState(std::get<0>(GetParam()), true); }
  Hosts hosts() const { return {.of_rank = std::get<1>(GetParam()), .page_bytes = std::get<2>(GetParam())}; }
};

// Byte by byte, in every file: each is written or sent by one rank, and no page is written by two hosts, nor
// by any from which something was sent.
TEST_P(HostBordersTest, EveryPageHasOneWriter) {
  const FileLayout layout =
      FileLayout::Create(State(), CheckpointType::kFull, /*max_file_bytes=*/700).value();
  for (int f = 0; f < layout.num_files(); ++f) {
    constexpr int kNobody = -1, kRankZero = -2;
    std::vector<int> writer(layout.File(f).bytes, kNobody);
    for (int rank = 0; rank < layout.state().world_size(); ++rank) {
      const auto claim = [&](uint64_t begin, uint64_t end, bool sent) {
        for (uint64_t at = begin; at < end; ++at) {
          EXPECT_EQ(writer.at(at), kNobody);
          writer.at(at) = sent ? kRankZero : hosts().of_rank[static_cast<size_t>(rank)];
        }
      };
      const Share share(layout, rank, hosts());
      for (const Share::Piece& piece : share.pieces()) {
        if (piece.file != static_cast<uint32_t>(f)) continue;
        claim(0, piece.head.size() - piece.head_sent, false);
        claim(piece.head.size() - piece.head_sent, piece.head.size(), true);
        for (const auto& [extent, sent] : piece.parts)
          claim(extent.offset, extent.offset + extent.bytes, sent);
      }
    }
    for (uint64_t page = 0; page < writer.size(); page += hosts().page_bytes) {
      std::set<int> writers;
      for (uint64_t at = page; at < std::min<uint64_t>(writer.size(), page + hosts().page_bytes); ++at)
        writers.insert(writer[at]);
      EXPECT_EQ(writers.size(), 1u) << layout.FileName(f) << ", page at " << page;
      EXPECT_FALSE(writers.contains(kNobody));
    }
  }
}

std::map<std::string, std::string> FilesIn(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    files[entry.path().filename()] = {std::istreambuf_iterator<char>(in), {}};
  }
  return files;
}

// Where ranks are changes nothing of what is saved, manifest and checksums included.
TEST_P(HostBordersTest, FilesAreThoseOfOneHost) {
  const TempFolder folder;
  ASSERT_TRUE(made::SaveMade(State(), CheckpointType::kFull, folder.Path("one"), {}).ok());
  ASSERT_TRUE(made::SaveMade(State(), CheckpointType::kFull, folder.Path("many"), {}, hosts()).ok());
  EXPECT_EQ(FilesIn(folder.Path("many")), FilesIn(folder.Path("one")));
}

INSTANTIATE_TEST_SUITE_P(
    Arrangements, HostBordersTest,
    ::testing::Combine(::testing::Values(Mesh{1, 6}, Mesh{2, 3}, Mesh{6, 1}),
                       ::testing::Values(std::vector{0, 0, 0, 3, 3, 3}, std::vector{0, 1, 2, 3, 4, 5},
                                         std::vector{0, 1, 0, 1, 0, 1}, std::vector{0, 0, 0, 0, 0, 5}),
                       ::testing::Values(8, 64, 4096)));

// Nothing is sent between the ranks of a host, nor by types whose files have one writer each.
TEST(HostsTest, OneWriterSendsNothing) {
  const StateLayout state = made::MadeState({1, 4}, true);
  const Hosts two = {.of_rank = {0, 0, 2, 2}, .page_bytes = 4096}, one = {.of_rank = {0, 0, 0, 0}};
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(Share(FileLayout::Create(state, CheckpointType::kSharded).value(), rank, two).sent_bytes(), 0u);
    EXPECT_EQ(Share(FileLayout::Create(state, CheckpointType::kFull).value(), rank, one).sent_bytes(), 0u);
    EXPECT_GT(Share(FileLayout::Create(state, CheckpointType::kFull).value(), rank, two).sent_bytes(), 0u);
  }
}

}  // namespace
}  // namespace ft
