#include "runtime/checkpoint/state/checkpoint_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <tuple>

#include "runtime/base/testing/temp_folder.h"
#include "runtime/checkpoint/state/testing/made_state.h"

namespace ft {
namespace {

namespace fs = std::filesystem;

void SaveAll(const StateLayout& state, CheckpointType type, const std::string& folder) {
  proto::Manifest manifest;
  manifest.mutable_position()->set_sequences((uint64_t{1} << 60) + 1);
  const absl::Status saved = made::SaveMade(state, type, folder, manifest);
  ASSERT_TRUE(saved.ok()) << saved;
}

std::string Contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void Replace(const fs::path& path, const std::string& contents) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << contents;
}

absl::Status ReadAll(const std::string& folder) {
  const auto reader = CheckpointReader::Open(folder);
  if (!reader.ok()) return reader.status();
  if (absl::Status status = (*reader)->VerifyFiles(); !status.ok()) return status;
  const FileLayout& layout = (*reader)->layout();
  for (uint32_t t = 0; t < layout.tensors().size(); ++t) {
    const LogicalTensor& tensor = layout.tensors()[t];
    const StateBuffer& buffer = layout.state().buffers[tensor.buffer];
    const size_t bytes = tensor.range.size() * SizeOf(buffer.dtype);
    std::vector<std::byte> got(bytes), expected(bytes);
    if (absl::Status status = (*reader)->Read(t, tensor.range, got.data()); !status.ok()) return status;
    made::FillValues(layout.state(), buffer, tensor.range, expected.data());
    if (got != expected) return absl::InternalError("other values in " + tensor.name);
  }
  return absl::OkStatus();
}

class RoundTripTest : public ::testing::TestWithParam<std::tuple<CheckpointType, Mesh, DType>> {};

TEST_P(RoundTripTest, WhatIsWrittenIsRead) {
  const auto [type, mesh, dtype] = GetParam();
  const TempFolder folder;
  SaveAll(made::MadeState(mesh, true, 4, dtype), type, folder.Path("step-00000007"));
  const absl::Status read = ReadAll(folder.Path("step-00000007"));
  EXPECT_TRUE(read.ok()) << read;
}

INSTANTIATE_TEST_SUITE_P(All, RoundTripTest,
                         ::testing::Combine(::testing::Values(CheckpointType::kFull, CheckpointType::kSharded,
                                                              CheckpointType::kLocal),
                                            ::testing::Values(Mesh{1, 1}, Mesh{1, 3}, Mesh{2, 2}, Mesh{5, 1}),
                                            ::testing::Values(DType::kF32, DType::kBF16)));

TEST(CheckpointReaderTest, TheManifestHasNumbersAsNumbers) {
  const TempFolder folder;
  SaveAll(made::MadeState({1, 2}, true), CheckpointType::kSharded, folder.Path("c"));
  const std::string text = Contents(folder.Path("c/manifest.json"));
  EXPECT_NE(text.find("\"sequences\": 1152921504606846977"), std::string::npos) << text;
  EXPECT_EQ((*CheckpointReader::Open(folder.Path("c")))->manifest().position().sequences(),
            (uint64_t{1} << 60) + 1);
}

// Whatever byte is another, it is found, and the file named.
TEST(CheckpointReaderTest, EveryFlippedByteIsFound) {
  for (const CheckpointType type :
       {CheckpointType::kFull, CheckpointType::kSharded, CheckpointType::kLocal}) {
    const TempFolder folder;
    const std::string path = folder.Path("c");
    SaveAll(made::MadeState({1, 2}, true), type, path);
    ASSERT_TRUE(ReadAll(path).ok());
    for (const auto& entry : fs::directory_iterator(path)) {
      const std::string whole = Contents(entry.path());
      const size_t stride = entry.path().filename() == kManifestName ? 41 : 13;
      for (size_t at = 0; at < whole.size(); at += stride) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
        Replace(entry.path(), damaged);
        const absl::Status status = ReadAll(path);
        ASSERT_FALSE(status.ok()) << entry.path() << " byte " << at;
        ASSERT_NE(status.message().find(entry.path().filename().string()), std::string::npos) << status;
      }
      Replace(entry.path(), whole);
    }
    EXPECT_TRUE(ReadAll(path).ok());
  }
}

TEST(CheckpointReaderTest, FilesThatAreCutMissingOrOfAnotherCheckpointAreFound) {
  const TempFolder folder;
  const std::string path = folder.Path("c");
  SaveAll(made::MadeState({1, 2}, true), CheckpointType::kSharded, path);
  StateLayout other = made::MadeState({1, 2}, true);
  other.units[0].name = "other";  // which makes other values of the same sizes
  SaveAll(other, CheckpointType::kSharded, folder.Path("other"));
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string whole = Contents(entry.path()), name = entry.path().filename().string();
    const auto expect_found = [&](const char* how) {
      const absl::Status status = ReadAll(path);
      EXPECT_FALSE(status.ok()) << name << " " << how;
      EXPECT_NE(status.message().find(name), std::string::npos) << status;
    };
    for (const size_t left : {size_t{0}, size_t{1}, whole.size() / 2, whole.size() - 1}) {
      Replace(entry.path(), whole.substr(0, left));
      expect_found("cut");
    }
    Replace(entry.path(), whole + "x");
    expect_found("longer");
    fs::remove(entry.path());
    expect_found("missing");
    fs::create_symlink(folder.Path("other/") + name, entry.path());
    expect_found("a link");
    fs::remove(entry.path());
    fs::create_directory(entry.path());
    expect_found("a folder");
    fs::remove(entry.path());
    if (name != kManifestName) {
      fs::copy(folder.Path("other/") + name, entry.path());
      expect_found("of another checkpoint");
      fs::remove(entry.path());
    }
    Replace(entry.path(), whole);
  }
  EXPECT_TRUE(ReadAll(path).ok());
}

// Of a checkpoint whose manifest is changed, with a right checksum.
template <typename Change>
absl::Status ReadForged(const std::string& path, proto::Manifest manifest, Change change) {
  change(manifest);
  Replace(path + "/manifest.json", ManifestText(manifest).value());
  return ReadAll(path);
}

// Manifests with a right checksum that say impossible things.
TEST(CheckpointReaderTest, HostileManifestsAreRefused) {
  const TempFolder folder;
  const std::string path = folder.Path("c");
  SaveAll(made::MadeState({1, 2}, true), CheckpointType::kSharded, path);
  const proto::Manifest good = (*CheckpointReader::Open(path))->manifest();
  const auto refused = [&](auto change, const std::string& message) {
    const absl::Status status = ReadForged(path, good, change);
    EXPECT_FALSE(status.ok()) << message;
    EXPECT_NE(status.message().find(message), std::string::npos) << status;
    EXPECT_NE(status.message().find("manifest.json"), std::string::npos) << status;
  };
  refused([](auto& m) { m.set_version(2); }, "version 2");
  refused([](auto& m) { m.set_type("pickle"); }, "'pickle' is no type");
  refused([](auto& m) { m.mutable_files(0)->set_name("../../etc/passwd"); }, "no name of a file");
  refused([](auto& m) { m.mutable_files(0)->set_name("/etc/passwd"); }, "no name of a file");
  refused([](auto& m) { m.mutable_files(0)->set_name("model.safetensors"); }, "is missing in it");
  refused([](auto& m) { m.mutable_files(1)->set_name(m.files(0).name()); }, "is there twice");
  refused([](auto& m) { m.set_block_bytes(0); }, "blocks of 0 bytes");
  refused([](auto& m) { m.mutable_state()->set_shard(4000000000u); }, "a mesh of");
  refused([](auto& m) { m.mutable_state()->set_replica(0); }, "a mesh of");
  refused([](auto& m) { m.mutable_state()->mutable_units(0)->set_elements(uint64_t{1} << 63); },
          "unit 'embed'");
  refused([](auto& m) { m.mutable_state()->mutable_parameters(0)->set_shape(0, int64_t{1} << 62); },
          "parameter");
  refused([](auto& m) { m.mutable_state()->mutable_parameters(1)->set_offset(0); }, "overlap");
  refused([](auto& m) { m.mutable_state()->mutable_buffers(0)->set_dtype("f8"); }, "'f8' is no type");
  refused([](auto& m) { m.mutable_state()->mutable_buffers(0)->set_unit(77); }, "belongs to no unit");
}

TEST(CheckpointReaderTest, StatesThatDoNotFitTheFilesAreRefused) {
  const TempFolder folder;
  const std::string path = folder.Path("c");
  SaveAll(made::MadeState({1, 2}, true), CheckpointType::kSharded, path);
  const proto::Manifest good = (*CheckpointReader::Open(path))->manifest();
  const auto refused = [&](auto change, const std::string& message) {
    const absl::Status status = ReadForged(path, good, change);
    EXPECT_NE(status.message().find(message), std::string::npos) << status;
  };
  refused([](auto& m) { m.mutable_files(0)->set_bytes(m.files(0).bytes() + 1); }, "by the manifest");
  refused([](auto& m) { m.mutable_files(0)->set_crc32("abc"); }, "not one checksum for each block");
  refused([](auto& m) { m.mutable_files(0)->set_bytes(uint64_t{1} << 62); },
          "not one checksum for each block");
  refused([](auto& m) { m.mutable_state()->mutable_parameters(0)->set_name("embed.w9"); },
          "its header lists");
  refused([](auto& m) { m.mutable_state()->mutable_units(2)->set_elements(1024); }, "takes");
}

}  // namespace
}  // namespace ft
