#include "runtime/checkpoint/safetensors_reader.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/base/exit_status.h"
#include "runtime/base/testing/temp_folder.h"

namespace ft {
namespace {

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string File(const std::string& header, const std::string& data) {
  return Bytes<uint64_t>({header.size()}) + header + data;
}

class SafetensorsReaderTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<SafetensorsReader>> OpenBytes(const std::string& contents) {
    return SafetensorsReader::Open(folder_.Write("m.safetensors", contents));
  }
  // The message for a file with this header and `data_bytes` zeros, without the path.
  std::string Error(const std::string& header, size_t data_bytes) {
    return ErrorOf(OpenBytes(File(header, std::string(data_bytes, '\0'))).status());
  }
  std::string ErrorOf(const absl::Status& status) {
    EXPECT_EQ(ExitStatus(status), kExitBadInput) << status;
    const std::string message(status.message());
    const std::string prefix = "'" + folder_.Path("m.safetensors") + "'";
    return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
  }

  TempFolder folder_;
};

TEST_F(SafetensorsReaderTest, ReadsWhatIsThere) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]},)"
      R"("a":{"shape":[],"dtype":"I64","data_offsets":[0,8]},)"
      R"("e":{"dtype":"F16","shape":[0,5],"data_offsets":[32,32]}}   )";
  auto reader = OpenBytes(File(header, Bytes<int64_t>({-7}) + Bytes<float>({1, 2, 3, 4, 5, 6})));
  ASSERT_TRUE(reader.ok()) << reader.status();
  ASSERT_EQ((*reader)->entries().size(), 3u);
  EXPECT_EQ((*reader)->entries()[0].name, "a");
  EXPECT_EQ((*reader)->entries()[0].num_elements, 1);
  EXPECT_EQ((*reader)->entries()[2].num_elements, 0);
  EXPECT_EQ((*reader)->Find("c"), nullptr);
  const SafetensorsReader::Entry* b = (*reader)->Find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->dtype, SafetensorsDType::kF32);
  EXPECT_EQ(b->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(b->bytes.size(), 24u);
  float out[3] = {};
  ASSERT_TRUE((*reader)->ReadAsF32(*b, 2, 3, out).ok());
  EXPECT_EQ((std::vector<float>(out, out + 3)), (std::vector<float>{3, 4, 5}));
  EXPECT_TRUE((*reader)->ReadAsF32(*b, 6, 0, out).ok());
  EXPECT_EQ((*reader)->ReadAsF32(*b, 4, 3, out).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ((*reader)->ReadAsF32(*b, -1, 1, out).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ((*reader)->ReadAsF32(*(*reader)->Find("a"), 0, 1, out).code(),
            absl::StatusCode::kInvalidArgument);
}

// Every 16-bit pattern against the definition of the formats.
TEST_F(SafetensorsReaderTest, ConvertsEveryHalf) {
  std::vector<uint16_t> all(65536);
  for (int i = 0; i < 65536; ++i) all[i] = i;
  const std::string header = R"({"h":{"dtype":"F16","shape":[65536],"data_offsets":[0,131072]},)"
                             R"("b":{"dtype":"BF16","shape":[65536],"data_offsets":[131072,262144]}})";
  auto reader = OpenBytes(File(header, Bytes(all) + Bytes(all)));
  ASSERT_TRUE(reader.ok()) << reader.status();
  for (const char* name : {"h", "b"}) {
    const int exponent_bits = *name == 'h' ? 5 : 8, fraction_bits = 15 - exponent_bits;
    const int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
    std::vector<float> out(65536);
    ASSERT_TRUE((*reader)->ReadAsF32(*(*reader)->Find(name), 0, 65536, out.data()).ok());
    for (int i = 0; i < 65536; ++i) {
      const int exponent = i >> fraction_bits & top, fraction = i & ((1 << fraction_bits) - 1);
      EXPECT_EQ(std::signbit(out[i]), i >= 32768) << name << i;
      if (exponent == top && fraction != 0) {
        EXPECT_TRUE(std::isnan(out[i])) << name << i;
        continue;
      }
      const int implicit = exponent == 0 ? 0 : 1 << fraction_bits;
      const double magnitude =
          exponent == top ? INFINITY
                          : std::ldexp(implicit + fraction, std::max(exponent, 1) - bias - fraction_bits);
      EXPECT_EQ(std::fabs(out[i]), magnitude) << name << i;
    }
  }
}

TEST_F(SafetensorsReaderTest, RoundsDoubles) {
  auto reader = OpenBytes(File(R"({"d":{"dtype":"F64","shape":[3],"data_offsets":[0,24]}})",
                               Bytes<double>({0.1, -1e300, 1 + 0x1p-24})));
  float out[3];
  ASSERT_TRUE((*reader)->ReadAsF32(*(*reader)->Find("d"), 0, 3, out).ok());
  EXPECT_EQ(out[0], 0.1f);
  EXPECT_EQ(out[1], -INFINITY);
  EXPECT_EQ(out[2], 1.0f);
}

TEST_F(SafetensorsReaderTest, RefusesBrokenFrames) {
  EXPECT_EQ(ErrorOf(OpenBytes("").status()),
            " is no safetensors file: it has 0 bytes, less than a header's length");
  EXPECT_EQ(ErrorOf(OpenBytes("hello, I am a text file").status()),
            " is no safetensors file: its header would have 5269260421095515496 bytes (at most 100000000 are "
            "allowed)");
  EXPECT_EQ(ErrorOf(OpenBytes(Bytes<uint64_t>({60}) + "{}").status()),
            " is truncated: its header has 60 bytes, 2 are there");
}

TEST_F(SafetensorsReaderTest, RefusesBadJson) {
  EXPECT_EQ(Error(R"({"a":{"dtype":"F32",)", 0),
            ": the safetensors header is not valid JSON at byte 20, near '\"F32\",'");
  EXPECT_NE(Error("{\"a\xff\":{}}", 0).find("not valid JSON at byte 3"), std::string::npos);
  EXPECT_NE(Error("{} x", 0).find("not valid JSON at byte 3"), std::string::npos);
  EXPECT_NE(Error("", 0).find("not valid JSON"), std::string::npos);
  const std::string deep(200'000, '[');
  EXPECT_EQ(Error(deep, 0),
            ": the safetensors header has an array where the object of all tensors should begin");
}

TEST_F(SafetensorsReaderTest, RefusesBadDescriptions) {
  const std::pair<std::string, std::string> cases[] = {
      {R"([])", "has an array where the object of all tensors should begin"},
      {R"({"a":3})", "has the number 3 in the description of tensor 'a'"},
      {R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})",
       "gives tensor 'a' the unknown dtype 'F33'"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
       "has the number -1 as shape of tensor 'a'"},
      {R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})",
       "has the number 1.5 as shape of tensor 'a'"},
      {R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", "has an array as shape of tensor 'a'"},
      {R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})", "has the number 1 as shape of tensor 'a'"},
      {R"({"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4]}})",
       "has the huge number 9223372036854775808 as shape of tensor 'a'"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})",
       "gives tensor 'a' 1 data_offsets instead of 2"},
      {R"({"a":{"dtype":"F32","shape":[1]}})", "gives tensor 'a' no data_offsets"},
      {R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", "gives tensor 'a' no shape"},
      {R"({"a":{"shape":[1],"data_offsets":[0,4]}})", "gives tensor 'a' no dtype"},
      {R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       "gives tensor 'a' two values of dtype"},
      {R"({"a":{"dtype":"F32","size":[1],"data_offsets":[0,4]}})",
       "has the key \"size\" in the description of tensor 'a'"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       "names tensor 'a' twice"},
      {R"({"__metadata__":{"x":3}})", "has the number 3 in __metadata__, which holds strings only"},
  };
  for (const auto& [header, error] : cases) {
    EXPECT_EQ(Error(header, 4), ": the safetensors header " + error) << header;
  }
}

TEST_F(SafetensorsReaderTest, RefusesWrongOffsets) {
  EXPECT_EQ(Error(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4),
            ": tensor 'a' has the data_offsets [0, 8], outside the 4 bytes of data");
  EXPECT_EQ(Error(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4),
            ": tensor 'a' has the data_offsets [4, 0], outside the 4 bytes of data");
  EXPECT_EQ(Error(R"({"a":{"dtype":"F32","shape":[3,2],"data_offsets":[0,8]}})", 8),
            ": tensor 'a' of shape [3, 2] and dtype F32 has 8 bytes of data");
  EXPECT_EQ(Error(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
            ": tensor 'a' of shape [4294967296, 4294967296] and dtype F32 has 0 bytes of data");
  EXPECT_EQ(Error(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                  R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                  12),
            ": tensors 'a' [0, 8] and 'b' [4, 12] overlap");
  EXPECT_EQ(Error(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                  R"("b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                  8),
            ": tensors 'a' [0, 8] and 'b' [0, 8] overlap");
  EXPECT_EQ(Error(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})", 12),
            ": 8 bytes of data before tensor 'a' belong to no tensor");
  EXPECT_EQ(Error(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 10),
            ": the last 6 bytes belong to no tensor");
}

// Cutting a good file at any place must be seen.
TEST_F(SafetensorsReaderTest, EveryTruncationIsSeen) {
  const std::string whole =
      File(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", std::string(8, 'x'));
  ASSERT_TRUE(OpenBytes(whole).ok());
  for (size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_FALSE(OpenBytes(whole.substr(0, bytes)).ok()) << bytes;
}

class ShardedTest : public SafetensorsReaderTest {
 protected:
  void SetUp() override {
    folder_.Write("m1.safetensors",
                  File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", Bytes<float>({1})));
    folder_.Write("m2.safetensors",
                  File(R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", Bytes<float>({2})));
  }
  std::string IndexError(const std::string& index) {
    return ErrorOf(SafetensorsReader::Open(folder_.Write("model.safetensors.index.json", index)).status());
  }
  std::string IndexPath() { return "'" + folder_.Path("model.safetensors.index.json") + "'"; }
};

TEST_F(ShardedTest, OpensTheIndexOrItsFolder) {
  const std::string path = folder_.Write("model.safetensors.index.json",
                                         R"({"metadata":{"total_size":8,"x":[1,{"y":null}]},)"
                                         R"("weight_map":{"b":"m2.safetensors","a":"m1.safetensors"}})");
  for (const std::string& place : {path, folder_.Path(".")}) {
    auto reader = SafetensorsReader::Open(place);
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ((*reader)->files().size(), 2u);
    float value = 0;
    ASSERT_TRUE((*reader)->ReadAsF32(*(*reader)->Find("a"), 0, 1, &value).ok());
    EXPECT_EQ(value, 1);
    ASSERT_TRUE((*reader)->ReadAsF32(*(*reader)->Find("b"), 0, 1, &value).ok());
    EXPECT_EQ(value, 2);
    EXPECT_TRUE((*reader)->FileOf(*(*reader)->Find("b")).ends_with("m2.safetensors"));
  }
}

TEST_F(ShardedTest, RefusesBadIndices) {
  EXPECT_EQ(IndexError(R"({"weight_map":{"a":"m2.safetensors"}})"),
            IndexPath() + " says that tensor 'a' is in 'm2.safetensors', but it is not");
  EXPECT_EQ(IndexError(R"({"weight_map":{"a":"m1.safetensors","b":"m1.safetensors"}})"),
            IndexPath() + " says that tensor 'b' is in 'm1.safetensors', but it is not");
  EXPECT_EQ(
      IndexError(R"({"weight_map":{"a":"../m1.safetensors"}})"),
      IndexPath() +
          ": the index puts tensor 'a' into '../m1.safetensors', which is not the name of a file beside it");
  EXPECT_EQ(IndexError(R"({"weight_map":{"a":"m1.safetensors","a":"m1.safetensors"}})"),
            IndexPath() + ": the index names tensor 'a' twice");
  EXPECT_EQ(IndexError(R"({"weight_map":{"a":1}})"),
            IndexPath() + ": the index has a number as file of tensor 'a'");
  EXPECT_EQ(IndexError(R"({"weights":{}})"), IndexPath() + ": the index has no weight_map, or an empty one");
  EXPECT_EQ(IndexError(R"([1])"), IndexPath() + ": the index has an array where an object should begin");
  EXPECT_NE(IndexError(R"({"weight_map":)").find("not valid JSON at byte"), std::string::npos);
  folder_.Write("m3.safetensors",
                File(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", Bytes<float>({1})));
  EXPECT_EQ(IndexError(R"({"weight_map":{"b":"m2.safetensors","a":"m1.safetensors","c":"m3.safetensors"}})"),
            "tensor 'a' is in '" + folder_.Path("m1.safetensors") + "' and in '" +
                folder_.Path("m3.safetensors") + "'");
}

TEST_F(ShardedTest, MissingFilesAreIoErrors) {
  folder_.Write("model.safetensors.index.json", R"({"weight_map":{"a":"none.safetensors"}})");
  EXPECT_EQ(ExitStatus(SafetensorsReader::Open(folder_.Path(".")).status()), kExitIo);
  EXPECT_EQ(ExitStatus(SafetensorsReader::Open(folder_.Path("none.safetensors")).status()), kExitIo);
  const TempFolder empty;
  EXPECT_EQ(ExitStatus(SafetensorsReader::Open(empty.Path(".")).status()), kExitIo);
}

}  // namespace
}  // namespace ft
