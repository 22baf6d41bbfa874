// The program that the build makes of each of ours, to write its manual: NAME_manual FOLDER.
#pragma once

#include <functional>

#include "CLI/CLI.hpp"
#include "tools/manual/page.h"

namespace ft::manual {

// Calls what it is given with a command line that lives so long.
using Describe = std::function<void(const std::function<void(const CLI::App&)>&)>;

// Writes man1/NAME.1, bash/NAME and zsh/_NAME below the folder argv[1], which are made. The exit status.
int Write(int argc, char** argv, const Describe& describe, const Page& page);

}  // namespace ft::manual
