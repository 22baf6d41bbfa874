// Forged files of tokens and documents: what opens is read to its end. Half of the tries are damaged only;
// the others lie, with hashes that are right.
#include <stdlib.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "runtime/data/dataset.h"
#include "runtime/data/testing/ftd_bytes.h"
#include "runtime/plan/inputs.h"
#include "test/fuzz/command_line.h"

namespace ft::fuzz {
namespace {

using Random = std::mt19937_64;
using Filling = proto::Input::Filling;

constexpr int64_t kSeqLen = 7, kVocabulary = 64;

int64_t Below(Random& random, int64_t count) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(count));
}

proto::Input InputOf(const std::string& name, proto::DType dtype, Filling filling, bool is_row) {
  proto::Input input;
  input.set_name(name);
  input.set_dtype(dtype);
  input.set_filling(filling);
  input.add_shape(1);
  if (is_row) input.add_shape(kSeqLen);
  return input;
}

// Some of the inputs that there are.
DataInputs InputsOf(Random& random) {
  DataInputs made{.inputs = {}, .seq_len = kSeqLen, .vocab_size = kVocabulary, .tokenizer_hash = {}};
  const auto type = [&] { return random() % 2 == 0 ? proto::I32 : proto::I64; };
  made.inputs.push_back(InputOf("tokens", type(), proto::Input::TOKENS, true));
  for (const Filling filling :
       {proto::Input::TARGETS, proto::Input::LABELS, proto::Input::POSITIONS, proto::Input::SEGMENTS,
        proto::Input::LENGTHS, proto::Input::ATTENTION_MASK}) {
    if (random() % 3 != 0) continue;
    const proto::DType dtype =
        filling == proto::Input::ATTENTION_MASK && random() % 2 == 0 ? proto::U8 : type();
    made.inputs.push_back(
        InputOf(proto::Input::Filling_Name(filling), dtype, filling, filling != proto::Input::LENGTHS));
  }
  if (random() % 4 == 0) made.inputs.push_back(InputOf("classes", type(), proto::Input::TENSOR, false));
  return made;
}

FtdParts PartsOf(Random& random) {
  FtdParts parts{.documents = {}, .vocabulary_size = kVocabulary};
  parts.kind = random() % 3 == 0 ? "sequences" : "text";
  const int64_t count = 1 + Below(random, 9);
  for (int64_t i = 0; i < count; ++i) {
    auto& document = parts.documents.emplace_back(1 + random() % (parts.kind == "text" ? 20 : kSeqLen));
    for (uint32_t& token : document) token = static_cast<uint32_t>(random() % kVocabulary);
  }
  if (random() % 2 == 0) {
    for (const auto& document : parts.documents)
      for (size_t k = 0; k < document.size(); ++k) parts.mask.push_back(random() % 2);
  }
  if (random() % 3 == 0)
    parts.inputs = {{"input.classes", "I64", {count}, Raw(std::vector<int64_t>(static_cast<size_t>(count)))}};
  return parts;
}

// Some bytes are others, and maybe some are gone or more.
void Damage(std::string& bytes, Random& random) {
  for (int64_t i = Below(random, 4); i >= 0 && !bytes.empty(); --i) {
    const auto at = static_cast<size_t>(Below(random, static_cast<int64_t>(bytes.size())));
    static constexpr char kEnds[] = {0, 1, 127, -128, -1, '9', '-', '"'};
    bytes[at] = random() % 2 == 0 ? kEnds[random() % sizeof(kEnds)] : static_cast<char>(random());
  }
  if (random() % 8 == 0)
    bytes.resize(static_cast<size_t>(Below(random, static_cast<int64_t>(bytes.size()) + 9)));
}

// A file whose tensors or metadata lie.
std::string Lie(const FtdParts& parts, Random& random) {
  std::vector<FtdTensor> tensors = parts.Tensors();
  std::map<std::string, std::string> metadata = parts.Metadata();
  if (random() % 4 == 0) {
    const auto words =
        VocabularyTensors(std::vector<std::string>(kVocabulary, "ab"), std::vector<uint8_t>(kVocabulary));
    tensors.insert(tensors.begin() + 1, words[0]);
    tensors.insert(tensors.end(), {words[1], words[2]});
  }
  for (int64_t i = Below(random, 3); i >= 0; --i) {
    FtdTensor& tensor = tensors[random() % tensors.size()];
    switch (random() % 6) {
      case 0:
        tensor.shape[0] += Below(random, 5) - 2;
        break;
      case 1: {
        static const char* const kTypes[] = {"U8", "U16", "U32", "U64", "I64", "F32", "BOOL", "F8"};
        tensor.dtype = kTypes[random() % std::size(kTypes)];
        break;
      }
      case 2: {
        auto entry = metadata.begin();
        std::advance(entry, random() % metadata.size());
        static const char* const kValues[] = {
            "", "0", "-1", "64", "65", "65537", "2147483648", "18446744073709551616", "ftd"};
        entry->second = kValues[random() % std::size(kValues)];
        break;
      }
      default:
        Damage(tensor.bytes, random);
    }
  }
  return FtdBytes(tensors, metadata);
}

// Both files of a Megatron data set, damaged or not.
std::pair<std::string, std::string> Megatron(Random& random) {
  std::vector<int32_t> sizes;
  std::vector<int64_t> places, documents = {0};
  int64_t count = 0;
  for (int64_t i = Below(random, 6); i >= 0; --i) {
    sizes.push_back(static_cast<int32_t>(Below(random, 20)));
    places.push_back(2 * count);
    count += sizes.back();
    if (random() % 2 == 0) documents.push_back(static_cast<int64_t>(sizes.size()));
  }
  documents.push_back(static_cast<int64_t>(sizes.size()));
  std::string tokens(static_cast<size_t>(2 * count), '\0');
  for (size_t i = 0; i < tokens.size(); i += 2) tokens[i] = static_cast<char>(random() % kVocabulary);
  std::string index = std::string("MMIDIDX\0\0\1\0\0\0\0\0\0\0\10", 18) +
                      Raw(std::vector<uint64_t>{sizes.size(), documents.size()}) + Raw(sizes) + Raw(places) +
                      Raw(documents);
  if (random() % 2 == 0) Damage(index, random);
  if (random() % 4 == 0) Damage(tokens, random);
  return {index, tokens};
}

// As numpy.save writes it.
std::string Npy(const std::string& descr, const std::string& shape, const std::string& bytes) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape);
  header.resize((10 + header.size() + 64) / 64 * 64 - 11, ' ');
  header += '\n';
  return std::string("\x93NUMPY\1\0", 8) + Raw(std::vector<uint16_t>{static_cast<uint16_t>(header.size())}) +
         header + bytes;
}

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Every example of what opens, into memory that is exactly as long as it has to be.
bool ReadAll(const std::string& path, DataInputs inputs) {
  const auto opened = OpenDataset({{.path = path}}, std::move(inputs));
  if (!opened.ok()) return false;
  const Dataset& data = **opened;
  std::vector<std::vector<char>> memory;
  std::vector<void*> rows;
  for (const proto::Input& input : data.inputs()) memory.emplace_back(ExampleBytes(input));
  for (auto& each : memory) rows.push_back(each.data());
  for (int64_t i = 0; i < data.num_sequences(); ++i) data.Read(i, rows);
  for (size_t i = 0; i < rows.size(); ++i) {  // as a model's table would
    if (data.inputs()[i].filling() != proto::Input::TOKENS) continue;
    int64_t token = 0;
    std::memcpy(&token, rows[i], SizeOf(static_cast<DType>(data.inputs()[i].dtype())));
    if (token < 0 || token >= kVocabulary) abort();
  }
  return true;
}

// A folder of arrays: tokens in two of them, and pictures.
bool TryArrays(const std::string& folder, Random& random) {
  DataInputs inputs{.inputs = {}, .seq_len = kSeqLen, .vocab_size = kVocabulary, .tokenizer_hash = {}};
  inputs.inputs.push_back(InputOf("tokens", proto::I64, proto::Input::TOKENS, true));
  inputs.inputs[0].set_ids_below(kVocabulary);
  inputs.inputs.push_back(InputOf("pixels", proto::F32, proto::Input::TENSOR, true));
  std::vector<int32_t> ids(3 * kSeqLen);
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % kVocabulary);
  const std::string tokens = Raw(ids);
  std::pair<const char*, std::string> files[] = {
      {"tokens-0.npy", Npy("<i4", "(1, 7)", tokens.substr(0, 4 * kSeqLen))},
      {"tokens-1.npy", Npy("<i4", "(2, 7)", tokens.substr(4 * kSeqLen))},
      {"pixels.npy", Npy("|u1", "(3, 7)", tokens.substr(0, 3 * kSeqLen))},
      {"preprocessor_config.json",
       R"({"rescale_factor": 0.5, "image_mean": 1, "image_std": [1,2,3,4,5,6,7]})"}};
  if (random() % 4 != 0) Damage(files[random() % std::size(files)].second, random);
  std::filesystem::create_directory(folder + "/d");
  for (const auto& [name, bytes] : files) Write(fmt::format("{}/d/{}", folder, name), bytes);
  return ReadAll(folder + "/d", inputs);
}

bool Try(const std::string& folder, Random& random) {
  if (random() % 6 == 0) return TryArrays(folder, random);
  const DataInputs inputs = InputsOf(random);
  if (random() % 4 == 0) {
    const auto [index, tokens] = Megatron(random);
    Write(folder + "/a.idx", index);
    Write(folder + "/a.bin", tokens);
    return ReadAll(folder + "/a.idx", inputs);
  }
  const FtdParts parts = PartsOf(random);
  std::string bytes = random() % 2 == 0 ? parts.Bytes() : Lie(parts, random);
  if (random() % 2 == 0) Damage(bytes, random);
  Write(folder + "/a.ftd", bytes);
  return ReadAll(folder + "/a.ftd", inputs);
}

}  // namespace
}  // namespace ft::fuzz

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  ft::fuzz::Wanted wanted;
  if (const auto status = ft::fuzz::ParseCommandLine(argc, argv, wanted)) return *status;
  std::string folder = std::filesystem::temp_directory_path() / "ft_data_fuzz_XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return 74;
  const auto end = Clock::now() + std::chrono::duration<double>(wanted.seconds);
  int64_t tries = 0, opened = 0;
  for (; tries < wanted.tries && Clock::now() < end; ++tries) {
    ft::fuzz::Random random(wanted.seed * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(wanted.first + tries));
    opened += ft::fuzz::Try(folder, random) ? 1 : 0;
  }
  std::filesystem::remove_all(folder);
  fmt::print("data fuzzing: {} tries, of which {} opened; seed {}\n", tries, opened, wanted.seed);
  return opened > tries / 20 ? 0 : 1;
}
