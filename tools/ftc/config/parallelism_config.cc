#include "tools/ftc/config/parallelism_config.h"

#include <algorithm>

#include "fmt/format.h"
#include "tools/ftc/config/key_table.h"
#include "tools/ftc/config/values.h"

namespace ftc {
namespace {

// An axis with fewer than two ranks is none.
std::string ReadRanks(const YamlEntry* entry, int64_t& ranks) {
  ranks = 1;
  if (entry == nullptr || SaysNotUsed(*entry) || Plain(entry->text) == "auto") return "";
  const std::string mistake = SetInteger(entry->text, -1, 1 << 20, ranks);
  ranks = std::max<int64_t>(ranks, 1);
  return mistake;
}

Given GivenBy(const YamlEntry& entry, std::string_view setting, std::string text) {
  return {
      .setting = SettingIndex(setting),
      .text = std::move(text),
      .origin = {.from = Origin::From::kFile, .key = entry.path, .file = entry.file, .line = entry.key_line}};
}

}  // namespace

std::string ApplyParallelism(const FileView& view, std::vector<Given>& given,
                             std::vector<std::string>& remarks, const YamlEntry*& entry) {
  const YamlEntry* const replicas = view.Find("parallelism_config.dp_replicate_size");
  const YamlEntry* const shards = view.Find("parallelism_config.dp_shard_size");
  int64_t replicate = 1, shard = 1;
  if (std::string mistake = ReadRanks(entry = replicas, replicate); !mistake.empty()) return mistake;
  if (std::string mistake = ReadRanks(entry = shards, shard); !mistake.empty()) return mistake;
  if (replicate == 1 && shard == 1) return "";

  const size_t setting = SettingIndex("strategy");
  const auto strategy =
      std::find_if(given.begin(), given.end(), [&](const Given& g) { return g.setting == setting; });
  entry = shard > 1 ? shards : replicas;
  if (shard == 1) {  // copies alone
    if (strategy == given.end()) given.push_back(GivenBy(*entry, "strategy", "no_shard"));
    return "";
  }
  const std::string plain = strategy == given.end() ? "full_shard" : strategy->text;
  if (plain == "no_shard") return fmt::format("{} shards nothing", NameOf(strategy->origin));
  if (replicate == 1) {
    if (strategy == given.end()) given.push_back(GivenBy(*entry, "strategy", plain));
    return "";
  }
  const bool keeps = plain == "shard_grad_op" || plain == "hybrid_shard_zero2";
  Given hybrid = GivenBy(*replicas, "strategy", keeps ? "hybrid_shard_zero2" : "hybrid_shard");
  if (strategy == given.end()) {
    given.push_back(hybrid);
  } else {
    *strategy = hybrid;
  }
  const std::string mesh = fmt::format("replica:{},shard:{}", replicate, shard);
  given.push_back(GivenBy(*replicas, "mesh", mesh));
  remarks.push_back(fmt::format("'{}' in {}:{} is {} over a mesh; give ftexec --mesh={} too", replicas->path,
                                replicas->file, replicas->key_line, hybrid.text, mesh));
  return "";
}

}  // namespace ftc
