// Writes the manual of ftc and its completions.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "runtime/targets/shipped_targets.h"
#include "tools/ftc/command_line.h"
#include "tools/ftc/config/settings.h"
#include "tools/manual/exits.h"
#include "tools/manual/write.h"

namespace {

bool Reads(const ftc::Setting& setting, const std::string& word) {
  ftc::Configuration configuration;
  return setting.value.set(word, configuration).empty();
}

// What values of settings may be, of what their types name.
ft::manual::Words WordsOfSettings() {
  ft::manual::Words words;
  for (const ftc::Setting& setting : ftc::Settings()) {
    if (Reads(setting, "any-word")) continue;  // globs
    std::vector<std::string>& of_setting = words["--" + ft::SettingFlag(setting.name)];
    // "dynamic (or 0), or a number"
    for (std::string word : std::vector<std::string>(absl::StrSplit(setting.value.type, ", "))) {
      if (word.starts_with("or ")) word.erase(0, 3);
      word.resize(std::min(word.find(' '), word.size()));
      if (Reads(setting, word)) of_setting.push_back(word);
    }
  }
  words["--target"] = ft::TargetNames();
  return words;
}

}  // namespace

int main(int argc, char** argv) {
  const ft::manual::Page page = {
      .description = {"A model is the forward graph of one, as text in the dialect ft of MLIR: of ftc model, "
                      "ftc import, or ft.export of the Python "
                      "package. ftc compile makes a plan of it: forward, backward, reduction of gradients, "
                      "clipping and optimizer as one static "
                      "schedule, which ftexec(1) runs on any number of ranks. What a plan costs is known "
                      "before it runs: ftc explain and ftc report. ftc tune chooses how a model is "
                      "sharded on a machine, within its memory."},
      .exits = ft::manual::CommonExits(),
      .examples = {{"ftc model gpt2 -o model.mlir", "The forward graph of GPT-2's debug preset."},
                   {"ftc compile model.mlir --strategy=full_shard -o plan.bin",
                    "A plan that shards parameters, gradients and optimizer state."},
                   {"ftc explain plan.bin --world-size=8 --target=h100-ib",
                    "Memory, traffic and time of a step on eight GPUs."},
                   {"ftc report plan.bin -o report.html", "The same as a page to look at."},
                   {"ftc tune model.mlir --world-size=8 --target=h100-ib -o train.yaml",
                    "The fastest configuration that fits, for ftc compile --config=train.yaml."}},
      .see_also = {"ftexec(1)", "ftrun(1)", "ftckpt(1)", "/usr/share/doc/ft"},
      .words = WordsOfSettings()};
  return ft::manual::Write(argc, argv, ftc::DescribeCommandLine, page);
}
