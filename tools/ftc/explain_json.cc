#include "nlohmann/json.hpp"
#include "tools/ftc/commands.h"

namespace ftc {
namespace {

using Json = nlohmann::ordered_json;

Json CollectiveJson(const ft::CollectiveTraffic& traffic) {
  return {{"bytes", traffic.bytes}, {"count", traffic.count}};
}

Json TrafficJson(const ft::Traffic& traffic) {
  return {{"all_gather", CollectiveJson(traffic.all_gather)},
          {"reduce_scatter", CollectiveJson(traffic.reduce_scatter)},
          {"all_reduce", CollectiveJson(traffic.all_reduce)},
          {"total_bytes", traffic.total_bytes()}};
}

Json UnitsJson(const ft::proto::Plan& plan, const ft::TrafficReport& report) {
  Json units = Json::array();
  const auto add = [&](const std::string& name, const ft::Traffic& traffic) {
    Json unit = {{"unit", name}};
    unit.update(TrafficJson(traffic));
    units.push_back(std::move(unit));
  };
  for (int i = 0; i < plan.units_size(); ++i) add(plan.units(i).name(), report.by_unit[i]);
  add("scalars", report.other);
  return units;
}

Json BytesJson(const ft::MemoryReport& memory) {
  Json bytes;
  for (const char* name : {"parameters", "gradients", "optimizer_state", "activations", "gathered", "staging",
                           "workspace", "io"}) {
    bytes[name] = memory.by_class[bytes.size()];  // in the order of proto::MemoryClass
  }
  bytes["padding"] = memory.padding;
  return bytes;
}

}  // namespace

std::string ExplainJson(const ft::proto::Plan& plan, const ft::BoundPlan& bound, const ft::PlanReport& report,
                        const CommunicatorBytes& communicators) {
  const ft::MemoryReport& memory = report.memory;
  Json traffic = TrafficJson(report.traffic.total);
  traffic["by_unit"] = UnitsJson(plan, report.traffic);
  const Json json = {
      {"model", plan.model()},
      {"strategy", plan.strategy()},
      {"batch", plan.batch()},
      {"seq_len", plan.seq_len()},
      {"world_size", bound.mesh.world_size()},
      {"mesh", {{"replica", bound.mesh.replica}, {"shard", bound.mesh.shard}}},
      {"parameters", report.parameters},
      {"arena_bytes", memory.arena_bytes},
      {"host_arena_bytes", memory.host_arena_bytes},
      {"bytes", BytesJson(memory)},
      {"peak", memory.peak},
      {"communicator_bytes", {{"shm", communicators.shm}, {"gloo", communicators.gloo}}},
      {"at_rest",
       {{"parameters", memory.at_rest.parameters},
        {"gradients", memory.at_rest.gradients},
        {"optimizer_state", memory.at_rest.optimizer_state},
        {"total", memory.at_rest.total()}}},
      {"traffic", traffic},
      {"flops",
       {{"forward", report.flops.forward},
        {"backward", report.flops.backward},
        {"optimizer", report.flops.optimizer},
        {"total", report.flops.total()}}},
  };
  return json.dump(2) + "\n";
}

}  // namespace ftc
