// What a shell offers when Tab is pressed behind a program of ours.
#pragma once

#include <string>

#include "tools/manual/command.h"

namespace ft::manual {

// For the folder of bash-completion: a file of the program's name. Needs bash alone.
std::string BashCompletion(const Command& command);
// For a folder of zsh's fpath: a file _PROGRAM.
std::string ZshCompletion(const Command& command);

}  // namespace ft::manual
