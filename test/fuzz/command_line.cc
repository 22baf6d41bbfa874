#include "test/fuzz/command_line.h"

#include "CLI/CLI.hpp"

namespace ft::fuzz {

std::optional<int> ParseCommandLine(int argc, char** argv, Wanted& wanted) {
  CLI::App app("Tries forged input: instructions on every kernel of a device, or files of data.");
  app.add_option("--tries", wanted.tries, "At most so many")->check(CLI::PositiveNumber);
  app.add_option("--seconds", wanted.seconds, "At most so long")->capture_default_str();
  app.add_option("--seed", wanted.seed, "Of the random numbers")->capture_default_str();
  app.add_option("--first", wanted.first, "Number of the first try; with --tries=1 that one alone")
      ->check(CLI::NonNegativeNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  return std::nullopt;
}

}  // namespace ft::fuzz
