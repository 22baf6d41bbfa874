// ftrun's command line: torchrun's options, as far as they make sense without Python.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace ft::run {

struct Options {
  int nproc_per_node = 1;
  int nnodes = 1;
  int node_rank = 0;
  std::string master_addr = "127.0.0.1";
  uint16_t master_port = 29500;  // 0: a free one
  int max_restarts = 0;
  double grace_seconds = 30;  // between SIGTERM and SIGKILL
  std::string log_dir;        // empty: none
  std::string run_id = "none";
  bool nodes_given = false;          // by --nnodes or --standalone
  bool prefix = true;                // "[rank N] " before every line
  std::vector<std::string> command;  // program and arguments

  int world_size() const { return nproc_per_node * nnodes; }
};

// What to do after parsing: go on, or exit with `exit_status` (help and usage errors are printed by then).
struct ParsedOptions {
  Options options;
  bool run = false;
  int exit_status = 0;
};

// Calls `describe` with the command line.
void DescribeOptions(const std::function<void(const CLI::App&)>& describe);

ParsedOptions ParseOptions(int argc, const char* const* argv);

// Cores that this process may use; at least 1.
int AvailableCores();

}  // namespace ft::run
