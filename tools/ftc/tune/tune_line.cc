#include "tools/ftc/tune/tune_line.h"

#include <algorithm>

#include "fmt/format.h"
#include "tools/ftc/config/settings.h"
#include "tools/ftc/config/values.h"
#include "tools/ftc/explain_line.h"
#include "tools/ftc/mistake.h"

namespace ftc {
namespace {

uint64_t ReadMemory(const char* flag, const std::string& text) {
  uint64_t bytes = 0;
  if (text.empty()) return bytes;
  if (const std::string mistake = SetBytes(text, bytes); !mistake.empty())
    throw Mistake{fmt::format("{}: {}", flag, mistake)};
  if (bytes == 0) throw Mistake{fmt::format("{}: no model trains in 0 bytes", flag)};
  return bytes;
}

std::vector<int> Ascending(std::vector<int> sizes) {
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

// What --world-sizes leaves no room for.
void CheckSizes(const TuneCommand& command) {
  if (command.world_sizes.empty()) return;
  for (const Given& given : command.settings.flags)
    for (const char* name : {"world_size", "mesh"})
      if (given.setting == SettingIndex(name))
        throw Mistake{fmt::format("{} and --world-sizes both say how many ranks there are: leave one out",
                                  given.origin.key)};
  if (command.world_sizes.size() == 1) return;
  if (!command.settings.output.empty())
    throw Mistake{"-o writes one configuration; leave out --world-sizes, or give one size"};
  if (command.space) throw Mistake{"--space prints one table; leave out --world-sizes, or give one size"};
}

}  // namespace

void TuneLine::AddTo(CLI::App& app) {
  CLI::App& sub = *app.add_subcommand(
      "tune", "Chooses strategy, mesh, batch, recomputation, offload and overlap for a model on a machine");
  sub.add_option("model", model_, "The model")->type_name("model.mlir")->required();
  sub.add_option("-o,--output", output_, "Configuration to write, with what was chosen")
      ->type_name("train.yaml");
  sub.add_option(
         "--memory", memory_,
         "Memory of a rank's device to stay within, with what lies beside its arena; 93% of the target's by "
         "default")
      ->type_name("BYTES");
  sub.add_option("--host-memory", host_memory_,
                 "Memory of a rank on its host for what is offloaded; any by default")
      ->type_name("BYTES");
  sub.add_option("--world-sizes", world_sizes_,
                 "Numbers of ranks, each tuned by itself: how far it scales, with --global-batch or without")
      ->type_name("N,N,...");
  sub.add_flag("--space", command_.space, "Prints the table that is chosen from, and chooses nothing");
  sub.add_flag("--exhaustive", command_.exhaustive, "Compiles every point of the table");
  sub.add_flag("--json", command_.json, "For programs");
  settings_.AddSettingsTo(sub);
}

TuneCommand TuneLine::Read() const {
  TuneCommand command = command_;
  if (const std::string mistake = settings_.ReadSettings(command.settings); !mistake.empty())
    throw Mistake{mistake};
  command.settings.model = model_;
  command.settings.output = output_;
  command.memory_bytes = ReadMemory("--memory", memory_);
  command.host_bytes = ReadMemory("--host-memory", host_memory_);
  command.world_sizes = Ascending(ReadWorldSizes(world_sizes_));
  CheckSizes(command);
  if (command.space && !output_.empty()) throw Mistake{"--space chooses nothing that -o could write"};
  if (command.space && command.json) throw Mistake{"--space prints text; leave out --json"};
  return command;
}

}  // namespace ftc
