// What a program's command line takes, as its parser has it: what manuals and completions are made of.
#pragma once

#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "tools/manual/page.h"

namespace ft::manual {

enum class Operand { kText, kFile, kFolder, kProgram };

// An option or a positional argument.
struct Argument {
  std::vector<std::string> names;  // "-o", "--output"; of a positional its name alone
  std::string placeholder;         // "FILE.yaml", "on|off"; empty: it takes no value
  std::string help;
  std::string usual;                 // its default; empty: none
  std::string group;                 // heading of --help
  std::vector<std::string> choices;  // words that may be its value
  Operand operand = Operand::kText;  // what its value is beside those
  bool takes_value = false;
  bool value_is_optional = false;  // and then stands behind '=' alone
  bool required = false;
  bool repeated = false;

  // The first long one.
  const std::string& name() const;
};

struct Command {
  std::string name, help;
  std::vector<Argument> options, positionals;
  std::vector<Command> commands;
  bool runs_program = false;  // the words from the first positional on are another program's command line
};

Command CommandOf(const CLI::App& app);

// As choices of options, of subcommands too, whose placeholders say none.
void AddWords(const Words& words, Command& command);

// Lines of a text that end at '\n'.
std::vector<std::string> Lines(const std::string& text);

}  // namespace ft::manual
