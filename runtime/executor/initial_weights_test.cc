// What a run may start from: files and folders against the facts and parameters of a plan.
#include "runtime/executor/initial_weights.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/exit_status.h"
#include "runtime/base/testing/temp_folder.h"
#include "runtime/base/testing/tiny_facts.h"
#include "runtime/checkpoint/safetensors_writer.h"
#include "runtime/plan/plan_facts.h"

namespace ft {
namespace {

// Of the only layer, the only tensor that is wanted.
constexpr const char* kTensor = "model.layers.0.mlp.up_proj.weight";
constexpr const char* kConfig =
    R"({"model_type": "llama", "vocab_size": 256, "hidden_size": 64, "num_hidden_layers": 1, "rope_theta": 10000,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 176, "rms_norm_eps": 1e-5})";

ModelFacts Facts() {
  ModelFacts facts = TinyLlamaFacts();
  facts.num_layers = 1;
  return facts;
}

proto::Plan PlanOf(const ModelFacts* facts) {
  proto::Plan plan;
  plan.set_seq_len(64);
  proto::Parameter* parameter = plan.add_parameters();
  parameter->set_name(kTensor);
  parameter->add_shape(2);
  if (facts != nullptr) SetFacts(*facts, plan);
  return plan;
}

class InitialWeightsTest : public ::testing::Test {
 protected:
  InitialWeightsTest() { Store({kTensor}); }

  void Store(const std::vector<std::string>& names, const char* file = "model.safetensors") {
    std::vector<TensorSpec> specs;
    for (const std::string& name : names) specs.push_back({name, SafetensorsDType::kF32, {2}});
    auto writer = SafetensorsWriter::Create(folder_.Path(file), specs);
    const std::string data(names.size() * 8, '\1');
    ASSERT_TRUE((*writer)->Append(data.data(), data.size()).ok());
    ASSERT_TRUE((*writer)->Commit().ok());
  }
  std::string Error(const std::string& path, const std::vector<std::string>& allow_unused = {}) {
    const absl::Status status = OpenInitialWeights(plan_, path, allow_unused).status();
    EXPECT_EQ(ExitStatus(status), kExitBadInput) << status;
    return std::string(status.message());
  }
  std::vector<std::string> Notes(const std::string& path, const std::vector<std::string>& allow_unused = {}) {
    const auto weights = OpenInitialWeights(plan_, path, allow_unused);
    EXPECT_TRUE(weights.ok()) << weights.status();
    if (!weights.ok()) return {"refused"};
    EXPECT_EQ(weights->entries.size(), 1u);
    EXPECT_EQ(weights->entries[0][0]->name, kTensor);
    return weights->notes;
  }

  TempFolder folder_;
  const std::string path_ = folder_.Path("");
  const std::string file_ = folder_.Path("model.safetensors");
  const std::string config_ = folder_.Path("config.json");
  const ModelFacts facts_ = Facts();
  proto::Plan plan_ = PlanOf(&facts_);
};

TEST_F(InitialWeightsTest, AFolderOfTheModel) {
  folder_.Write("config.json", kConfig);
  EXPECT_TRUE(Notes(path_).empty());
  EXPECT_TRUE(Notes(file_).empty());
}

TEST_F(InitialWeightsTest, AllThatIsWrongIsOneMessage) {
  std::string config = kConfig;
  config.replace(config.find("10000"), 5, "50000");
  config.replace(config.find("1e-5"), 4, "1e-6");
  folder_.Write("config.json", config);
  Store({"model.layers.0.mlp.gate_proj.weight", "score.weight"});
  const std::string expected =
      "these are not the weights of the plan's model: '" + path_ +
      "config.json': rope_theta is 50000, the model's rope_theta is 10000; rms_norm_eps is 1e-06, the "
      "model's norm_eps is 1e-05; '" +
      path_ +
      "model.safetensors' has no tensor 'model.layers.0.mlp.up_proj.weight' (nor "
      "'layers.0.mlp.up_proj.weight'); 2 tensors of '" +
      path_ +
      "model.safetensors' have no place in the model: model.layers.0.mlp.gate_proj.weight, score.weight "
      "(--allow-unused=GLOB leaves tensors out on purpose)";
  EXPECT_EQ(Error(path_.substr(0, path_.size() - 1)), expected);
  EXPECT_EQ(Error(file_), expected);
}

TEST_F(InitialWeightsTest, TensorsThatAreLeftOutOnPurpose) {
  folder_.Write("config.json", kConfig);
  Store({kTensor, "score.weight"});
  EXPECT_NE(Error(path_).find("score.weight"), std::string::npos);
  EXPECT_NE(Error(path_, {"adapter.*"}).find("score.weight"), std::string::npos);
  const std::vector<std::string> notes = Notes(path_, {"adapter.*", "score.*"});
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("left out as --allow-unused says: score.weight"), std::string::npos) << notes[0];
}

TEST_F(InitialWeightsTest, NothingToCompareWith) {
  const std::string folder = path_.substr(0, path_.size() - 1);
  EXPECT_EQ(Notes(folder),
            std::vector<std::string>{"'" + folder + "' has no config.json: only tensors were compared"});
  EXPECT_TRUE(Notes(file_).empty());
  folder_.Write("config.json", "not JSON");
  plan_ = PlanOf(nullptr);
  const std::vector<std::string> note = {"'" + config_ +
                                         "' was not compared: the model does not say its facts (ft.facts)"};
  EXPECT_EQ(Notes(path_), note);
  EXPECT_EQ(Notes(file_), note);
}

TEST_F(InitialWeightsTest, TheConfigOfAnotherProgram) {
  folder_.Write("config.json", R"({"learning_rate": 0.1})");
  EXPECT_NE(Error(path_).find("does not say its model_type"), std::string::npos);
  EXPECT_EQ(Notes(file_),
            std::vector<std::string>{"'" + config_ + "' was not compared: it does not say a model_type"});
  folder_.Write("config.json", "learning_rate: 0.1");
  EXPECT_NE(Error(file_).find("not valid JSON"), std::string::npos);
}

TEST_F(InitialWeightsTest, NotesNameTheFile) {
  std::string config = kConfig;
  config.replace(config.find("\"llama\""), 7, "\"mistral\"");
  folder_.Write("config.json", config);
  EXPECT_EQ(Notes(path_),
            std::vector<std::string>{
                "'" + config_ +
                "': this run has sequences of 64, in which a sliding window of 4096 hides nothing"});
}

TEST_F(InitialWeightsTest, TheListIsBounded) {
  std::string config = kConfig;
  config.pop_back();
  for (int i = 0; i < 100000; ++i) config += ", \"key" + std::to_string(i) + "\": 1";
  folder_.Write("config.json", config + "}");
  const std::string error = Error(path_);
  EXPECT_TRUE(error.ends_with(" more in config.json")) << error;
  EXPECT_LT(error.size(), 4000u);
}

TEST_F(InitialWeightsTest, DamagedPlansAndMissingFiles) {
  plan_.mutable_facts(0)->set_name("hidden");
  EXPECT_NE(Error(path_).find("'hidden'"), std::string::npos);
  EXPECT_EQ(ExitStatus(OpenInitialWeights(plan_, folder_.Path("none")).status()), kExitIo);
  std::filesystem::create_directory(config_);
  plan_ = PlanOf(&facts_);
  EXPECT_NE(Error(path_).find("not a regular file"), std::string::npos);
}

}  // namespace
}  // namespace ft
