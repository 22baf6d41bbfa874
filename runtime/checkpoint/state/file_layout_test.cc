#include "runtime/checkpoint/state/file_layout.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "runtime/checkpoint/safetensors_header.h"
#include "runtime/checkpoint/state/testing/made_state.h"

namespace ft {
namespace {

using Case = std::tuple<CheckpointType, int, int, bool, DType>;  // replica, shard, sliced

class FileLayoutTest : public ::testing::TestWithParam<Case> {
 protected:
  StateLayout State() const {
    const auto [type, replica, shard, sliced, dtype] = GetParam();
    return made::MadeState({replica, shard}, sliced, 4, dtype);
  }
  CheckpointType type() const { return std::get<0>(GetParam()); }
};

// Every element of the state is saved by one rank, and by one that holds it.
TEST_P(FileLayoutTest, RanksShareTheStateWithoutGapOrOverlap) {
  const StateLayout state = State();
  ASSERT_TRUE(state.Check().ok()) << state.Check();
  for (const StateBuffer& buffer : state.buffers) {
    std::map<uint64_t, int> saver;
    for (int rank = 0; rank < state.world_size(); ++rank) {
      const ElementRange saved = state.SavedBy(buffer, rank), held = state.HeldBy(buffer, rank);
      for (uint64_t e = saved.begin; e < saved.end; ++e) {
        EXPECT_TRUE(saver.emplace(e, rank).second) << e;
        EXPECT_EQ(state.SaverOf(buffer, e), rank) << e;
        EXPECT_TRUE(held.begin <= e && e < held.end) << e;
      }
    }
    EXPECT_EQ(saver.size(), state.Elements(buffer));
  }
}

// What ranks write and the heads fill every file, byte by byte, once.
TEST_P(FileLayoutTest, FilesAreWrittenWholeAndOnce) {
  const StateLayout state = State();
  const FileLayout layout = FileLayout::Create(state, type(), /*max_file_bytes=*/700).value();
  std::vector<std::set<std::pair<uint64_t, uint64_t>>> written(static_cast<size_t>(layout.num_files()));
  uint64_t bytes = 0;
  for (int rank = 0; rank < state.world_size(); ++rank) {
    for (const Extent& extent : layout.WrittenBy(rank)) {
      EXPECT_TRUE(written[extent.file].emplace(extent.offset, extent.bytes).second);
      bytes += extent.bytes;
    }
  }
  for (int f = 0; f < layout.num_files(); ++f) {
    const LayoutFile file = layout.File(f);
    uint64_t end = file.head.size();
    for (const auto& [offset, size] : written[static_cast<size_t>(f)]) {
      EXPECT_EQ(offset, end) << file.name;
      end = offset + size;
    }
    EXPECT_EQ(end, file.bytes) << file.name;
  }
  // Local ones have what lies between parameters too.
  const bool is_local = type() == CheckpointType::kLocal;
  const auto saved_bytes = is_local ? LocallySavedBytes : SavedBytes;
  if (!is_local) {
    EXPECT_EQ(bytes, StateBytes(state));
  }
  for (int rank = 0; rank < state.world_size(); ++rank) {
    uint64_t own = 0;
    for (const Extent& extent : layout.WrittenBy(rank)) own += extent.bytes;
    EXPECT_EQ(own, saved_bytes(state, rank));
    EXPECT_LE(own, LargestShare(state, saved_bytes));
  }
}

// The heads are what the format asks for, with the tensors where the layout says.
TEST_P(FileLayoutTest, HeadsAreSafetensors) {
  const StateLayout state = State();
  const FileLayout layout = FileLayout::Create(state, type(), 700).value();
  for (int f = 0; f < layout.num_files(); ++f) {
    const LayoutFile file = layout.File(f);
    const auto tensors =
        ParseSafetensorsHeader(file.head.substr(8), file.bytes - file.head.size(), file.name);
    ASSERT_TRUE(tensors.ok()) << tensors.status();
    ASSERT_EQ(tensors->size(), file.placed.size());
    for (size_t i = 0; i < tensors->size(); ++i) {
      EXPECT_EQ((*tensors)[i].name, layout.tensors()[file.placed[i].tensor].name);
      EXPECT_EQ((*tensors)[i].begin + file.head.size(), file.placed[i].offset);
      EXPECT_EQ(static_cast<uint64_t>((*tensors)[i].num_elements), file.placed[i].range.size());
      EXPECT_EQ(file.placed[i].offset % SizeOf((*tensors)[i].dtype), 0u) << "not aligned";
    }
  }
}

// Finding a range and writing it agree.
TEST_P(FileLayoutTest, EveryElementIsFoundWhereItWasWritten) {
  const StateLayout state = State();
  FileLayout layout = FileLayout::Create(state, type(), 700).value();
  std::map<std::pair<uint32_t, uint64_t>, std::pair<uint32_t, uint64_t>> place;  // of (buffer, element)
  for (int rank = 0; rank < state.world_size(); ++rank) {
    for (const Extent& extent : layout.WrittenBy(rank)) {
      const uint64_t size = SizeOf(state.buffers[extent.buffer].dtype);
      for (uint64_t i = 0; i < extent.bytes / size; ++i)
        place[{extent.buffer, extent.element + i}] = {extent.file, extent.offset + i * size};
    }
  }
  for (uint32_t t = 0; t < layout.tensors().size(); ++t) {
    const LogicalTensor& tensor = layout.tensors()[t];
    EXPECT_EQ(layout.FindTensor(tensor.name), static_cast<int>(t));
    const uint64_t size = SizeOf(state.buffers[tensor.buffer].dtype);
    for (const ElementRange range :
         {tensor.range, ElementRange{tensor.range.begin + 1, tensor.range.end},
          ElementRange{tensor.range.begin, (tensor.range.begin + tensor.range.end) / 2}}) {
      if (range.empty()) continue;
      uint64_t at = range.begin;
      for (const Extent& extent : layout.Find(t, range)) {
        EXPECT_EQ(extent.element, at);
        for (uint64_t i = 0; i < extent.bytes / size; ++i, ++at)
          EXPECT_EQ(place.at({tensor.buffer, at}), std::pair(extent.file, extent.offset + i * size));
      }
      EXPECT_EQ(at, range.end);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, FileLayoutTest,
                         ::testing::Combine(::testing::Values(CheckpointType::kFull, CheckpointType::kSharded,
                                                              CheckpointType::kLocal),
                                            ::testing::Values(1, 2, 3), ::testing::Values(1, 2, 5, 64),
                                            ::testing::Bool(), ::testing::Values(DType::kF32, DType::kBF16)));

TEST(FileLayoutNamesTest, FilesOfWholeTensorsAreNamedAsHuggingFaceDoes) {
  const StateLayout state = made::MadeState({1, 2}, true);
  const FileLayout one = FileLayout::Create(state, CheckpointType::kFull).value();
  ASSERT_EQ(one.num_files(), 2);
  EXPECT_EQ(one.FileName(0), "model.safetensors");
  EXPECT_EQ(one.FileName(1), "optimizer.safetensors");
  const FileLayout many = FileLayout::Create(state, CheckpointType::kFull, 700).value();
  EXPECT_EQ(many.FileName(0), "model-00001-of-00003.safetensors");
  const FileLayout ranks = FileLayout::Create(state, CheckpointType::kSharded).value();
  EXPECT_EQ(ranks.FileName(1), "rank-00001-of-00002.safetensors");
}

TEST(FileLayoutNamesTest, TwoTensorsOfOneNameAreRefused) {
  StateLayout state = made::MadeState({1, 1}, true);
  state.parameters[1].name = "exp_avg/embed.w0";
  EXPECT_EQ(FileLayout::Create(state, CheckpointType::kFull).status().message(),
            "two tensors of a checkpoint would be 'exp_avg/embed.w0'");
}

TEST(StateLayoutTest, ImpossibleStatesAreRefused) {
  const StateLayout good = made::MadeState({2, 2}, true);
  const auto refused = [&](auto change, const std::string& message) {
    StateLayout state = good;
    change(state);
    EXPECT_NE(std::string(state.Check().message()).find(message), std::string::npos) << state.Check();
  };
  refused([](StateLayout& s) { s.mesh.shard = 0; }, "a mesh of 2 x 0 ranks");
  refused([](StateLayout& s) { s.mesh = {1 << 15, 1 << 15}; }, "is not possible");
  refused([](StateLayout& s) { s.block_elements = 0; }, "a block of 0 elements");
  refused([](StateLayout& s) { s.units[0].elements = uint64_t{1} << 60; }, "unit 'embed' has");
  refused([](StateLayout& s) { s.units[1].name = "embed"; }, "is there twice");
  refused([](StateLayout& s) { s.parameters[0].offset = 1000; }, "does not lie in its unit");
  refused([](StateLayout& s) { s.parameters[0].offset = ~uint64_t{0} - 3; }, "does not lie in its unit");
  refused([](StateLayout& s) { s.parameters[1].offset = 8; }, "overlap");
  refused([](StateLayout& s) { s.parameters[0].shape = {-7, -5}; }, "a dimension of -7");
  refused([](StateLayout& s) { s.parameters[0].unit = 9; }, "no unit");
  refused([](StateLayout& s) { s.buffers[0].unit = 9; }, "belongs to no unit");
  refused([](StateLayout& s) { s.buffers[0].role = "../x"; }, "no name of a state");
  refused([](StateLayout& s) { s.buffers[1] = s.buffers[0]; }, "is there twice");
  refused([](StateLayout& s) { s.buffers[2].kind = StateLayoutKind::kRows; }, "in no possible way");
  refused([](StateLayout& s) { s.buffers[0].kind = static_cast<StateLayoutKind>(7); }, "in no possible way");
}

// {7, 5}, {3}, {} and {2, 2, 11} in one unit, {13, 9} and {130} in another.
TEST(StateLayoutTest, RowsAndColumnsLieWithoutGaps) {
  const StateLayout state = made::MadeState({1, 2}, true);
  const FileLayout layout = FileLayout::Create(state, CheckpointType::kFull).value();
  const auto expect = [&](const std::string& name, const std::vector<int64_t>& shape, ElementRange range) {
    const int tensor = layout.FindTensor(name);
    ASSERT_GE(tensor, 0) << name;
    EXPECT_EQ(layout.tensors()[static_cast<size_t>(tensor)].shape, shape) << name;
    EXPECT_EQ(layout.tensors()[static_cast<size_t>(tensor)].range, range) << name;
  };
  expect("row_var/embed.w0", {7, 1}, {0, 7});
  expect("row_var/embed.w3", {2, 2, 1}, {7, 11});
  expect("col_var/embed.w0", {1, 5}, {0, 5});
  expect("col_var/embed.w3", {2, 1, 11}, {5, 27});
  expect("variance/embed.w1", {3}, {0, 3});
  expect("variance/embed.w2", {}, {3, 4});
  expect("variance/head.w1", {130}, {0, 130});
  EXPECT_EQ(layout.FindTensor("row_var/embed.w1"), -1);
  EXPECT_EQ(layout.FindTensor("variance/head.w0"), -1);
}

}  // namespace
}  // namespace ft
