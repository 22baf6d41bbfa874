#include "tools/ftrun/rank_environment.h"

#include <algorithm>
#include <map>

namespace ft::run {

std::vector<std::string> RankEnvironment(const std::vector<std::string>& inherited, const Options& options,
                                         int local_rank, int attempt, uint16_t port, int cores) {
  std::map<std::string, std::string> variables;
  for (const std::string& variable : inherited) {
    const size_t equals = variable.find('=', 1);
    if (equals != std::string::npos) variables[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  // An outer launcher's file would be written by several ranks.
  variables.erase("TORCHELASTIC_ERROR_FILE");
  const std::string rank = std::to_string(options.node_rank * options.nproc_per_node + local_rank);
  const std::string world_size = std::to_string(options.world_size());
  const std::map<std::string, std::string> own = {
      {"RANK", rank},
      {"WORLD_SIZE", world_size},
      {"LOCAL_RANK", std::to_string(local_rank)},
      {"LOCAL_WORLD_SIZE", std::to_string(options.nproc_per_node)},
      {"GROUP_RANK", std::to_string(options.node_rank)},
      {"GROUP_WORLD_SIZE", std::to_string(options.nnodes)},
      {"ROLE_NAME", "default"},
      {"ROLE_RANK", rank},
      {"ROLE_WORLD_SIZE", world_size},
      {"MASTER_ADDR", options.master_addr},
      {"MASTER_PORT", std::to_string(port)},
      {"TORCHELASTIC_RUN_ID", options.run_id},
      {"TORCHELASTIC_RESTART_COUNT", std::to_string(attempt)},
      {"TORCHELASTIC_MAX_RESTARTS", std::to_string(options.max_restarts)},
      {"TORCHELASTIC_USE_AGENT_STORE", "True"},
  };
  for (const auto& [name, value] : own) variables[name] = value;
  variables.try_emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  variables.try_emplace("OMP_NUM_THREADS", std::to_string(std::max(1, cores / options.nproc_per_node)));
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

}  // namespace ft::run
