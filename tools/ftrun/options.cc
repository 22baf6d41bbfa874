#include "tools/ftrun/options.h"

#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "runtime/base/exit_status.h"
#include "runtime/base/standard_streams.h"
#include "runtime/base/version.h"

namespace ft::run {
namespace {

// Empty when the options fit together, else what is wrong with them.
std::string Contradiction(const Options& options) {
  if (options.node_rank >= options.nnodes) {
    return "--node-rank=" + std::to_string(options.node_rank) +
           " is not below --nnodes=" + std::to_string(options.nnodes);
  }
  if (options.nnodes > 1 && options.master_addr.empty())
    return "several nodes need --master-addr, an address of node 0 that all can reach";
  if (options.nnodes > 1 && options.master_port == 0)
    return "several nodes need the same --master-port, not 0";
  if (!(options.grace_seconds >= 0 && options.grace_seconds <= 1e7))  // so that NaN is none
    return "--grace is no number of seconds from 0 to 10000000";
  if (options.command.empty()) return "no program to run; usage: ftrun --nproc-per-node=N PROGRAM [ARGS...]";
  // Everything from the first word on that is not one of our options belongs to the program.
  if (options.command[0].rfind("-", 0) == 0)
    return "unknown option " + options.command[0] + "; see ftrun --help";
  return "";
}

constexpr char kDescription[] =
    "Starts the ranks of one node, with the environment that torchrun gives them, and ends all when one "
    "fails.\n"
    "Usage: ftrun [OPTIONS] PROGRAM [ARGS...]";

// What the options are read into.
struct Line {
  Options& options;
  std::string nproc = "1", prefix = "auto";
  bool standalone = false, no_python = false;
};

void AddAll(CLI::App& app, Line& line) {
  app.set_version_flag("--version", VersionText("ftrun", {}));
  app.prefix_command();
  app.add_option("--nproc-per-node,--nproc_per_node", line.nproc,
                 "Ranks on this node: a number, or auto (one per core)")
      ->type_name("N|auto");
  app.add_option("--nnodes", line.options.nnodes, "Nodes; start one ftrun on each")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--node-rank,--node_rank", line.options.node_rank, "This node's number, from 0")
      ->type_name("N")
      ->check(CLI::Range(0, 1 << 16));
  app.add_option("--master-addr,--master_addr", line.options.master_addr,
                 "Name or address of node 0; with one node 127.0.0.1 unless given")
      ->type_name("HOST");
  app.add_option("--master-port,--master_port", line.options.master_port,
                 "Port of the store on node 0; 0 takes a free one")
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--standalone", line.standalone, "One node, any free port");
  app.add_option("--max-restarts,--max_restarts", line.options.max_restarts,
                 "How often all ranks are started again after a failure")
      ->type_name("N")
      ->check(CLI::Range(0, 1 << 16));
  app.add_option("--grace", line.options.grace_seconds,
                 "Seconds that ranks have to end after a signal, or when another one has failed, before they "
                 "are killed; more than ftexec's --grace")
      ->type_name("SECONDS")
      ->capture_default_str();
  app.add_option("--log-dir,--log_dir", line.options.log_dir,
                 "Also write each rank's output to DIR/rank_N.log")
      ->type_name("DIR");
  app.add_option("--run-id,--run_id,--rdzv-id,--rdzv_id", line.options.run_id, "Name of the run in the store")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--prefix", line.prefix,
                 "'[rank N] ' before every line: auto (with several ranks), on or off")
      ->check(CLI::IsMember({"auto", "on", "off"}));
  app.add_flag("--no-python,--no_python", line.no_python,
               "Accepted for torchrun's sake; ftrun starts any program as it is");
}

}  // namespace

void DescribeOptions(const std::function<void(const CLI::App&)>& describe) {
  Options options;
  Line line{.options = options};
  CLI::App app(kDescription, "ftrun");
  AddAll(app, line);
  describe(app);
}

ParsedOptions ParseOptions(int argc, const char* const* argv) {
  ParsedOptions parsed;
  Options& options = parsed.options;
  options.master_addr.clear();  // to tell whether it was given
  Line line{.options = options};
  CLI::App app(kDescription, "ftrun");
  AddAll(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked = error.get_exit_code() == 0;  // --help
    if (asked) {
      app.exit(error);
    } else {
      PrintError(std::string("ftrun: ") + error.what() + "; ftrun --help lists the options");
    }
    parsed.exit_status = asked ? kExitOk : kExitUsage;
    return parsed;
  }
  options.command = app.remaining();
  if (!options.command.empty() && options.command[0] == "--") options.command.erase(options.command.begin());
  std::string wrong;
  try {
    size_t used = 0;
    options.nproc_per_node =
        line.nproc == "auto" || line.nproc == "cpu" ? AvailableCores() : std::stoi(line.nproc, &used);
    if (used != 0 && used != line.nproc.size()) options.nproc_per_node = 0;
  } catch (const std::exception&) {
    options.nproc_per_node = 0;
  }
  if (options.nproc_per_node < 1 || options.nproc_per_node > 4096) {
    wrong = "--nproc-per-node=" + line.nproc + " is neither auto nor a number from 1 to 4096";
  }
  if (line.standalone) options.master_port = 0;
  options.nodes_given = line.standalone || app.count("--nnodes") > 0;
  if (wrong.empty()) wrong = Contradiction(options);
  if (!wrong.empty()) {
    PrintError("ftrun: " + wrong);
    parsed.exit_status = kExitUsage;
    return parsed;
  }
  if (options.master_addr.empty()) options.master_addr = "127.0.0.1";
  options.prefix = line.prefix == "on" || (line.prefix == "auto" && options.nproc_per_node > 1);
  parsed.run = true;
  return parsed;
}

int AvailableCores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 1;
  return std::max(1, CPU_COUNT(&allowed));
}

}  // namespace ft::run
