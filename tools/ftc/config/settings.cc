#include "tools/ftc/config/settings.h"

#include <algorithm>

#include "tools/ftc/config/setting_rows.h"

namespace ftc {

const std::vector<Setting>& Settings() {
  static const std::vector<Setting>* const kAll = [] {
    auto* all = new std::vector<Setting>;
    for (auto rows : {ShardingRows, OverlapRows, PrecisionRows, MemoryRows, OptimizerRows, AccumulationRows,
                      MeshRows, RunRows}) {
      for (Setting& row : rows()) all->push_back(std::move(row));
    }
    return all;
  }();
  return *kAll;
}

size_t SettingIndex(std::string_view name) {
  const std::vector<Setting>& all = Settings();
  return std::find_if(all.begin(), all.end(), [&](const Setting& s) { return s.name == name; }) - all.begin();
}

std::string FlagName(std::string_view setting) {
  std::string flag(setting);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

}  // namespace ftc
