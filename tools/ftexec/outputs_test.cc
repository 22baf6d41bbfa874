#include "tools/ftexec/outputs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include "runtime/base/testing/temp_folder.h"

namespace ft {
namespace {

class OutputsTest : public ::testing::Test {
 protected:
  OutputsTest() {
    std::filesystem::create_directory(folder_.Path("data"));
    folder_.Write("data/a.txt", "text");
    flags_.plan = folder_.Write("plan.bin", "");
    flags_.data = {{.path = folder_.Path("data")}};
  }

  std::string At(const std::string& name) const { return folder_.Path(name); }
  // What is said where `set` has been applied to the flags; empty: nothing is wrong.
  std::string Said(const std::function<void(Flags&)>& set) const {
    Flags flags = flags_;
    set(flags);
    return std::string(CheckOutputs(flags).message());
  }

  const TempFolder folder_;
  Flags flags_;
};

TEST_F(OutputsTest, NoneLiesAmongTheData) {
  std::string Flags::* const options[] = {&Flags::save_weights, &Flags::metrics,        &Flags::trace,
                                          &Flags::save_hf,      &Flags::checkpoint_dir, &Flags::log_dir};
  std::filesystem::create_directory_symlink(At("data"), At("link"));
  for (const auto option : options) {
    for (const char* name : {"data/x", "data/deep/x", "data/x/", "link/x", "data"}) {
      const std::string path = At(name);
      const std::string said = Said([&](Flags& f) { f.*option = path; });
      EXPECT_NE(said.find("'" + path + "' would lie in '" + At("data") + "', of which --data reads"),
                std::string::npos)
          << said;
      EXPECT_NE(Said([&](Flags& f) {
                  f.*option = path;
                  f.eval_data = std::exchange(f.data, {{.path = At("plan.bin")}});
                }).find("of which --eval-data reads"),
                std::string::npos);
      EXPECT_NE(Said([&](Flags& f) {
                  f.*option = path;
                  f.data = {{.path = At("d*/*")}, {.path = At("d*")}};
                }).find("would lie in '" + At("d*")),
                std::string::npos)
          << path;
    }
    for (const char* name : {"elsewhere/x", "data2", "data.x", "data/.hidden/x"})
      EXPECT_EQ(Said([&](Flags& f) { f.*option = At(name); }), "") << name;
    EXPECT_EQ(Said([&](Flags& f) {
                f.*option = At("data/x");
                f.data = {{.path = At("data/*.txt")}};
              }),
              "");
  }
}

TEST_F(OutputsTest, NoneLiesInWhatAnotherWrites) {
  const auto refused = [&](const std::function<void(Flags&)>& set, const std::string& words) {
    const std::string said = Said(set);
    EXPECT_NE(said.find(words), std::string::npos) << "said: " << said;
  };
  const auto with_checkpoints = [&](std::string Flags::* option, const std::string& name) {
    return [=, this](Flags& f) {
      f.checkpoint_dir = At("run");
      f.*option = At(name);
    };
  };
  for (const char* name : {"run/step-00000002", "run/step-00000002/x", "run/.staged-step-00000002"}) {
    const std::string words = "' would lie in what --checkpoint-dir '" + At("run") + "' writes itself";
    refused(with_checkpoints(&Flags::metrics, name), "--metrics '" + At(name) + words);
    refused(with_checkpoints(&Flags::save_weights, name), "--save-weights '" + At(name) + words);
    refused(with_checkpoints(&Flags::save_hf, name), "--save-hf '" + At(name) + words);
  }
  refused(with_checkpoints(&Flags::save_hf, "run"), "--checkpoint-dir and --save-hf are the same folder");
  refused(with_checkpoints(&Flags::metrics, "run/"), "are the same ");
  for (const auto option : {&Flags::metrics, &Flags::save_weights, &Flags::save_hf, &Flags::log_dir})
    EXPECT_EQ(Said(with_checkpoints(option, "run/beside")), "");
  EXPECT_EQ(Said(with_checkpoints(&Flags::log_dir, "run")), "");  // these may share one
  refused(
      [&](Flags& f) {
        f.save_hf = At("hf");
        f.log_dir = At("hf/logs");
      },
      "--log-dir '" + At("hf/logs") + "' would lie in what --save-hf");
  refused([&](Flags& f) { f.save_hf = f.log_dir = At("hf"); }, "are the same folder");
  refused(
      [&](Flags& f) {
        f.log_dir = At("logs");
        f.metrics = At("logs/rank0.log");
      },
      "--metrics '" + At("logs/rank0.log") + "' would lie in what --log-dir");
  refused(
      [&](Flags& f) {
        f.metrics = At("m");
        f.checkpoint_dir = At("m/c");
      },
      "--checkpoint-dir '" + At("m/c") + "' would lie in what --metrics");
  EXPECT_EQ(Said([](Flags& f) { f.metrics = f.trace = "/dev/null"; }), "");
}

}  // namespace
}  // namespace ft
