#include "runtime/checkpoint/safetensors_writer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstring>
#include <string>
#include <vector>

#include "runtime/base/testing/temp_folder.h"
#include "runtime/checkpoint/safetensors_reader.h"

namespace ft {
namespace {

const std::vector<TensorSpec>& Specs() {
  static const auto* specs =
      new std::vector<TensorSpec>{{"a.weight", SafetensorsDType::kF32, {2, 3}},
                                  {"scalar \"q\" \xc3\xa9", SafetensorsDType::kF32, {}},
                                  {"none", SafetensorsDType::kF64, {0, 4}},
                                  {"half", SafetensorsDType::kBF16, {5}}};
  return *specs;
}

class SafetensorsWriterTest : public testing::Test {
 protected:
  // Bytes 0, 1, 2, ... for the whole data area.
  static std::string Data(uint64_t bytes) {
    std::string data;
    for (uint64_t i = 0; i < bytes; ++i) data.push_back(static_cast<char>(i));
    return data;
  }
  TempFolder folder_;
  std::string path_ = folder_.Path("out.safetensors");
};

TEST_F(SafetensorsWriterTest, RoundTrips) {
  for (size_t piece : {1, 3, 100}) {
    auto writer = SafetensorsWriter::Create(path_, Specs());
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_EQ((*writer)->total_bytes(), 38u);
    const std::string data = Data(38);
    for (size_t i = 0; i < data.size(); i += piece) {
      ASSERT_TRUE((*writer)->Append(data.data() + i, std::min(piece, data.size() - i)).ok());
    }
    ASSERT_TRUE((*writer)->Commit().ok());
    auto reader = SafetensorsReader::Open(path_);
    ASSERT_TRUE(reader.ok()) << reader.status();
    std::string read;
    ASSERT_EQ((*reader)->entries().size(), Specs().size());
    for (size_t i = 0; i < Specs().size(); ++i) {
      const SafetensorsReader::Entry& entry = (*reader)->entries()[i];
      EXPECT_EQ(entry.name, Specs()[i].name);
      EXPECT_EQ(entry.dtype, Specs()[i].dtype);
      EXPECT_EQ(entry.shape, Specs()[i].shape);
      read.append(entry.bytes.begin(), entry.bytes.end());
    }
    EXPECT_EQ(read, data);
  }
}

TEST_F(SafetensorsWriterTest, HeaderIsWhatHuggingFaceReads) {
  auto writer = SafetensorsWriter::Create(path_, std::vector<TensorSpec>{{"w", SafetensorsDType::kF32, {2}}});
  ASSERT_TRUE((*writer)->Append("12345678", 8).ok());
  ASSERT_TRUE((*writer)->Commit().ok());
  const std::string file = TempFolder::Read(path_);
  uint64_t header_bytes;
  std::memcpy(&header_bytes, file.data(), 8);
  EXPECT_EQ((8 + header_bytes) % 8, 0u);
  EXPECT_EQ(file.size(), 8 + header_bytes + 8);
  const std::string header = file.substr(8, header_bytes);
  const std::string json =
      R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  EXPECT_EQ(header.substr(0, json.size()), json);
  EXPECT_EQ(header.find_first_not_of(' ', json.size()), std::string::npos);
}

TEST_F(SafetensorsWriterTest, WithoutCommitTheOldFileStays) {
  folder_.Write("out.safetensors", "old");
  {
    auto writer = SafetensorsWriter::Create(path_, Specs());
    ASSERT_TRUE((*writer)->Append("12345678", 8).ok());
    const absl::Status status = (*writer)->Commit();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(status.message(),
              "'" + path_ + "': 8 of 38 bytes were written; the data of tensor 'a.weight' is not complete");
    EXPECT_EQ((*writer)->Append(Data(38).data(), 38).code(), absl::StatusCode::kOutOfRange);
    EXPECT_EQ(folder_.NumFiles(), 2u);
  }
  EXPECT_EQ(TempFolder::Read(path_), "old");
  EXPECT_EQ(folder_.NumFiles(), 1u);
}

TEST_F(SafetensorsWriterTest, AFailingDiskLeavesTheOldFile) {
  folder_.Write("out.safetensors", "old");
  rlimit limit;
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{100'000, limit.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  {
    auto writer =
        SafetensorsWriter::Create(path_, std::vector<TensorSpec>{{"w", SafetensorsDType::kU8, {1 << 20}}});
    ASSERT_TRUE(writer.ok());
    const std::string data(1 << 20, 'x');
    const absl::Status status = (*writer)->Append(data.data(), data.size());
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_EQ(status.message(),
              "cannot write '" + path_ + "': it would be larger than files may be (ulimit -f)");
    EXPECT_FALSE((*writer)->Commit().ok());
  }
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(TempFolder::Read(path_), "old");
  EXPECT_EQ(folder_.NumFiles(), 1u);
}

TEST_F(SafetensorsWriterTest, RefusesBadSpecs) {
  const std::vector<TensorSpec> bad[] = {
      {{"w", SafetensorsDType::kU8, {1}}, {"w", SafetensorsDType::kU8, {1}}},
      {{"", SafetensorsDType::kU8, {1}}},
      {{"__metadata__", SafetensorsDType::kU8, {1}}},
      {{"w", SafetensorsDType::kU8, {-1}}},
      {{"w", SafetensorsDType::kF64, {int64_t{1} << 62}}},
      {{"w\xff", SafetensorsDType::kU8, {1}}}};
  for (const std::vector<TensorSpec>& specs : bad) {
    EXPECT_EQ(SafetensorsWriter::Create(path_, specs).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(SafetensorsWriter::Create(folder_.Path("no/such"), {}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(folder_.NumFiles(), 0u);
}

TEST_F(SafetensorsWriterTest, NoTensorsIsAFileToo) {
  auto writer = SafetensorsWriter::Create(path_, {});
  ASSERT_TRUE((*writer)->Commit().ok());
  EXPECT_EQ((*SafetensorsReader::Open(path_))->entries().size(), 0u);
}

}  // namespace
}  // namespace ft
