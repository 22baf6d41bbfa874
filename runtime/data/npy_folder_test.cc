#include "runtime/data/npy_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/exit_status.h"
#include "runtime/base/testing/temp_folder.h"
#include "runtime/data/data_text.h"
#include "runtime/data/dataset.h"
#include "runtime/data/npy_array.h"
#include "runtime/data/testing/input.h"
#include "runtime/data/testing/raw.h"

namespace ft {
namespace {

// As numpy.save writes it.
std::string Npy(const std::string& descr, const std::string& shape, const std::string& bytes,
                const std::string& order = "False") {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  header.resize((10 + header.size() + 64) / 64 * 64 - 11, ' ');
  header += '\n';
  return std::string("\x93NUMPY\1\0", 8) + Raw(std::vector<uint16_t>{static_cast<uint16_t>(header.size())}) +
         header + bytes;
}

// Pictures of 2 channels of 1 x 2, and classes below 3.
DataInputs Pictures() {
  DataInputs made;
  made.inputs = {InputOf("pixels", proto::F32, {4, 2, 1, 2}), InputOf("labels", proto::I64, {4})};
  made.inputs[1].set_ids_below(3);
  return made;
}

constexpr char kScale[] =
    R"({"rescale_factor": 0.5, "image_mean": [1, 2], "image_std": [0.25, 0.5], "size": 1})";

class NpyFolderTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_.Path("d")); }
  void Write(const std::string& name, const std::string& bytes) const { folder_.Write("d/" + name, bytes); }

  // Three examples in two arrays, and their classes in one.
  void WriteGood() const {
    Write("pixels-0.npy", Npy("|u1", "(1, 2, 1, 2)", std::string("\0\1\2\377", 4)));
    Write("pixels-1.npy", Npy("|u1", "(2, 2, 1, 2)", "abcdefgh"));
    Write("labels.npy", Npy("<i4", "(3,)", Raw(std::vector<int32_t>{2, 0, 1})));
    Write("preprocessor_config.json", kScale);
  }

  void ExpectRefused(const std::string& words, const DataInputs& inputs = Pictures()) const {
    const auto data = OpenDataset({{.path = folder_.Path("d")}}, inputs);
    EXPECT_EQ(ExitStatus(data.status()), kExitBadInput) << words;
    EXPECT_NE(std::string(data.status().message()).find(words), std::string::npos) << words << data.status();
  }

  TempFolder folder_;
};

TEST_F(NpyFolderTest, FillsInputsByName) {
  WriteGood();
  const auto data = OpenDataset({{.path = folder_.Path("d")}}, Pictures());
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->num_sequences(), 3);
  float pixels[4];
  int64_t label = 0;
  (*data)->Read(0, {pixels, &label});
  // (x / 2 - mean) / std
  EXPECT_EQ(std::vector<float>(pixels, pixels + 4), (std::vector<float>{-4, -2, -2, 251}));
  EXPECT_EQ(label, 2);
  (*data)->Read(2, {pixels, &label});
  EXPECT_EQ(std::vector<float>(pixels, pixels + 4),
            (std::vector<float>{(101 / 2.0F - 1) * 4, (102 / 2.0F - 1) * 4, (103 / 2.0F - 2) * 2,
                                (104 / 2.0F - 2) * 2}));
  EXPECT_EQ(label, 1);
  EXPECT_NE(DataText(**data).find("(npy, 3 examples)"), std::string::npos) << DataText(**data);
}

TEST_F(NpyFolderTest, FloatsAreTakenAsTheyAre) {
  Write("pixels.npy", Npy("<f4", "(1, 2, 1, 2)", Raw(std::vector<float>{0.5F, -1, 2, 3})));
  Write("labels.npy", Npy("|u1", "(1,)", "\2"));
  const auto data = OpenDataset({{.path = folder_.Path("d")}}, Pictures(), DataFormat::kNpy);
  ASSERT_TRUE(data.ok()) << data.status();
  float pixels[4];
  int64_t label = 0;
  (*data)->Read(0, {pixels, &label});
  EXPECT_EQ(std::vector<float>(pixels, pixels + 4), (std::vector<float>{0.5F, -1, 2, 3}));
  EXPECT_EQ(label, 2);
}

TEST_F(NpyFolderTest, RefusesWhatDoesNotFit) {
  WriteGood();
  std::filesystem::remove(folder_.Path("d/preprocessor_config.json"));
  ExpectRefused("has bytes for an input of floats; put the preprocessor_config.json");
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {"[]", "it holds no JSON object"},
           {"{", "it holds no JSON object"},
           {"{}", "it has no 'image_mean'"},
           {R"({"image_mean": [1], "image_std": 1})",
            "'image_mean' has 1 numbers for pictures of 2 channels"},
           {R"({"image_mean": 1, "image_std": 0})", "'image_std' has 0"},
           {R"({"image_mean": "a"})", "'image_mean' is no number"},
           {R"({"do_normalize": 1})", "'do_normalize' is neither true nor false"}}) {
    Write("preprocessor_config.json", text);
    ExpectRefused(words);
  }
  Write("preprocessor_config.json", R"({"do_normalize": false})");
  Write("more.npy", Npy("|u1", "(3,)", "abc"));
  ExpectRefused("no input of the model takes 'more.npy'; its inputs are pixels, labels");
  std::filesystem::remove(folder_.Path("d/more.npy"));
  Write("labels.npy", Npy("<i4", "(3,)", Raw(std::vector<int32_t>{2, 0, 3})));
  ExpectRefused("has for example 2 the value 3, outside of 0 ... 2");
  Write("labels.npy", Npy("<i4", "(2,)", Raw(std::vector<int32_t>{2, 0})));
  ExpectRefused("input 'labels' has 2 examples, those before it have 3");
  Write("labels.npy", Npy("<f4", "(3,)", std::string(12, '\0')));
  ExpectRefused("is F32 [3], but the model's input wants i64 [] for each example");
  std::filesystem::remove(folder_.Path("d/labels.npy"));
  ExpectRefused("it has no labels.npy or labels-*.npy");
  Write("pixels.npy", Npy("|u1", "(1, 2, 1, 2)", "abcd"));
  ExpectRefused("'pixels-0.npy' and 'pixels-1.npy' are of one input");
  std::filesystem::remove(folder_.Path("d/pixels.npy"));
  Write("pixels-1.npy", Npy("|u1", "(2, 1, 2, 2)", "abcdefgh"));
  ExpectRefused("does not have the shape of the model's input, f32 [2, 1, 2]");
  DataInputs constant = Pictures();
  constant.inputs[0].set_filling(proto::Input::CONSTANT);
  ExpectRefused("is the same for all examples", constant);
}

TEST_F(NpyFolderTest, RefusesArraysThatAreNone) {
  const auto refused = [&](const std::string& bytes, const std::string& words) {
    const auto array = NpyArray::Open(folder_.Write("a.npy", bytes));
    EXPECT_EQ(ExitStatus(array.status()), kExitBadInput) << words;
    EXPECT_NE(std::string(array.status().message()).find(words), std::string::npos)
        << words << array.status();
  };
  const std::string good = Npy("<i4", "(2, 1)", std::string(8, '\0'));
  EXPECT_TRUE(NpyArray::Open(folder_.Write("a.npy", good)).ok());
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_EQ(ExitStatus(NpyArray::Open(folder_.Write("a.npy", good.substr(0, size))).status()),
              kExitBadInput)
        << size;
  refused(good + "a", "has 9 bytes of elements, but an array of <i4 (2, 1) has 8");
  refused(Npy("<f8", "(1,)", std::string(8, '\0')), "has elements of '<f8'");
  refused(Npy(">i4", "(1,)", std::string(4, '\0')), "has elements of '>i4'");
  refused(Npy("<i4", "(1,)", std::string(4, '\0'), "True"), "is in Fortran's order");
  refused(Npy("<i4", "()", std::string(4, '\0')), "is a single number");
  refused(Npy("<i4", "(-1,)", std::string(4, '\0')), "has no header of an array");
  refused(Npy("<i4", "(4294967296, 4294967296, 4294967296)", ""),
          "an array of <i4 (4294967296, 4294967296, 4294967296) has");
  refused(Npy("<i4", "(1,), 'shape': (1,)", std::string(4, '\0')), "has no header of an array");
  std::string version = good;
  version[6] = 9;
  refused(version, "is of version 9.0");
}

}  // namespace
}  // namespace ft
