#include "nlohmann/json.hpp"
#include "tools/ftc/config/configure.h"
#include "tools/ftc/tune/tune_figures.h"
#include "tools/ftc/tune/tuning.h"

namespace ftc {
namespace {

using Json = nlohmann::ordered_json;
using ft::compiler::TuneRow;
using ft::compiler::TuneTrial;

Json OfTrial(const Tuning& tuning, const TuneTrial& trial) {
  const Figures figures = FiguresOf(tuning, trial);
  return {{"step_seconds", trial.seconds},
          {"tokens_per_s", figures.tokens_per_s},
          {"mfu", figures.mfu},
          {"device_bytes", trial.deviceBytes},
          {"arena_bytes", trial.arenaBytes},
          {"host_arena_bytes", trial.hostBytes},
          {"exposed_seconds", trial.exposedSeconds}};
}

Json OfRow(const Tuning& tuning, const TuneRow& row) {
  Json json = OfTrial(tuning, row.trial);
  for (const auto& [name, text] : ft::compiler::settingsAt(tuning.space, row.point))
    json["settings"][name] = text;
  return json;
}

Json OfRows(const Tuning& tuning, const std::vector<TuneRow>& rows) {
  Json json = Json::array();
  for (const TuneRow& row : rows) json.push_back(OfRow(tuning, row));
  return json;
}

Json Of(const Tuning& tuning) {
  const auto& result = tuning.result;
  Json json = {{"model", tuning.request.model},
               {"target", tuning.request.base.target.name()},
               {"world_size", tuning.request.base.worldSize},
               {"memory_bytes", tuning.request.memoryBytes}};
  if (!tuning.refused.empty()) {
    json["refused"] = tuning.refused;
    return json;
  }
  json["points"] = tuning.space.size();
  json["compilations"] = result.compilations;
  json["bound_seconds"] = result.boundSeconds;
  if (tuning.own) {
    json["own"] =
        tuning.own->refused.empty() ? OfTrial(tuning, *tuning.own) : Json{{"refused", tuning.own->refused}};
    json["own"]["fits"] = ft::compiler::fits(*tuning.own, tuning.request);
  }
  json["best"] = OfRows(tuning, result.best);
  json["front"] = OfRows(tuning, result.front);
  json["changes_bits"] = OfRows(tuning, result.beside);
  json["rejected"] = Json::array();
  for (const auto& rejection : result.rejections)
    json["rejected"].push_back(
        {{"what", rejection.what}, {"points", rejection.points}, {"why", rejection.why}});
  if (!tuning.space.batchKeeper.empty()) json["batch_kept_by"] = tuning.space.batchKeeper;
  return json;
}

}  // namespace

std::string TuneJson(const TuneCommand&, const std::vector<Tuning>& tunings) {
  if (tunings.size() == 1) return Of(tunings[0]).dump(2) + "\n";
  Json all = Json::array();
  for (const Tuning& tuning : tunings) all.push_back(Of(tuning));
  return all.dump(2) + "\n";
}

}  // namespace ftc
