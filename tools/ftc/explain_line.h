// The command lines of ftc explain and ftc report: plans or a model, ranks and machine.
#pragma once

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "tools/ftc/command_line.h"
#include "tools/ftc/compile_line.h"

namespace ftc {

// Options as they were typed; made into a command when all of them are known.
struct ExplainTexts {
  std::string mesh, compare, peak, device, world_sizes, tokens;
  std::vector<std::string> paths;
};

// "8,64,512". Throws Mistake.
std::vector<int> ReadWorldSizes(const std::string& texts);

// The subcommands; what they are given to fill must live as long as `app`.
CLI::App& AddExplain(CLI::App& app, ExplainCommand& command, ExplainTexts& texts);
CLI::App& AddReport(CLI::App& app, ReportCommand& command, ExplainTexts& texts);

// Of what was parsed; fill the rest of `command`. Throw Mistake.
void CheckExplain(const CLI::App& sub, const CompileLine& settings, ExplainCommand& command,
                  const ExplainTexts& texts);
void CheckReport(const CLI::App& sub, const CompileLine& settings, ReportCommand& command,
                 const ExplainTexts& texts);

}  // namespace ftc
