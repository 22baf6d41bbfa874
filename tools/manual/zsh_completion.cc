#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tools/manual/completions.h"

namespace ft::manual {
namespace {

// In a specification of _arguments, within single quotes.
std::string Specified(const std::string& text) {
  return absl::StrReplaceAll(
      text,
      {{"\\", "\\\\"}, {"'", "'\\''"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}, {"`", "\\`"}, {"$", "\\$"}});
}

// What completes a value.
std::string Action(const Argument& argument) {
  constexpr const char* kActions[] = {" ", "_files", "_files -/", "_command_names"};
  const char* operand = kActions[static_cast<int>(argument.operand)];
  if (argument.choices.empty()) return operand;
  const std::string words = absl::StrJoin(argument.choices, " ");
  return argument.operand == Operand::kText ? absl::StrCat("(", words, ")")
                                            : absl::StrCat("{compadd ", words, "; ", operand, "}");
}

std::string Message(const Argument& argument) {
  const std::string& text = argument.choices.empty() ? argument.placeholder : argument.name();
  return text.empty() ? "value" : Specified(text);
}

void AppendOption(const Argument& option, const std::string& indent, std::string& text) {
  for (const std::string& name : option.names) {
    const bool is_long = name.rfind("--", 0) == 0;
    absl::StrAppend(&text, " \\\n", indent, "'", option.repeated ? "*" : "", name);
    if (option.takes_value && is_long) absl::StrAppend(&text, "=");
    if (option.value_is_optional) absl::StrAppend(&text, "=-");
    absl::StrAppend(&text, "[", Specified(option.help), "]");
    if (option.takes_value) absl::StrAppend(&text, ":", Message(option), ":", Action(option));
    if (option.value_is_optional) absl::StrAppend(&text, "::", Message(option), ":", Action(option));
    absl::StrAppend(&text, "'");
  }
}

void AppendSpecifications(const Command& command, const std::string& indent, std::string& text) {
  absl::StrAppend(&text, indent, "_arguments -S");
  for (const Argument& option : command.options) AppendOption(option, indent + "  ", text);
  for (const Argument& positional : command.positionals)
    absl::StrAppend(&text, " \\\n", indent, "  '", positional.repeated ? "*" : "", ":", Message(positional),
                    ":_files'");
  if (command.runs_program) absl::StrAppend(&text, " \\\n", indent, "  '*::program:_normal'");
  absl::StrAppend(&text, "\n");
}

}  // namespace

std::string ZshCompletion(const Command& command) {
  std::string text = absl::StrCat("#compdef ", command.name,
                                  "\n# Made from the tables of options that it is built with.\n\n");
  if (command.commands.empty()) {
    AppendSpecifications(command, "", text);
    return text;
  }
  absl::StrAppend(&text, "if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n  local -a commands=(");
  for (const Command& sub : command.commands)
    absl::StrAppend(&text, "\n    '", sub.name, ":", Specified(Lines(sub.help)[0]), "'");
  absl::StrAppend(
      &text,
      "\n  )\n  _describe command commands\n  return\nfi\nlocal command=$words[2]\ncase $command in\n");
  for (const Command& sub : command.commands) {
    absl::StrAppend(&text, "  ", sub.name, ")\n    shift words\n    (( CURRENT-- ))\n");
    AppendSpecifications(sub, "    ", text);
    absl::StrAppend(&text, "    ;;\n");
  }
  absl::StrAppend(&text, "  *)\n");
  AppendSpecifications(command, "    ", text);
  absl::StrAppend(&text, "    ;;\nesac\n");
  return text;
}

}  // namespace ft::manual
