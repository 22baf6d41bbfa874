// The environment a rank is started with: torchrun's variables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/ftrun/options.h"

namespace ft::run {

// `inherited` ("NAME=value" each) with the variables of this rank set. OMP_NUM_THREADS is this rank's share
// of `cores` unless it is inherited; `attempt` counts restarts; the store is at options.master_addr:`port`.
std::vector<std::string> RankEnvironment(const std::vector<std::string>& inherited, const Options& options,
                                         int local_rank, int attempt, uint16_t port, int cores);

}  // namespace ft::run
