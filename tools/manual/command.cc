#include "tools/manual/command.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace ft::manual {
namespace {

bool IsWord(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::islower(c) || std::isdigit(c) || c == '_' || c == '-' || c == '.';
  });
}

bool HasExtension(const std::string& text) {
  const size_t dot = text.rfind('.');
  return dot != text.npos && dot + 1 < text.size() &&
         std::all_of(text.begin() + static_cast<std::ptrdiff_t>(dot) + 1, text.end(),
                     [](unsigned char c) { return std::islower(c); });
}

// "PATH[:WEIGHT][,...]", "plan.bin|model.mlir", "DIR", "NAME|FILE.yaml"
Operand OperandOf(const std::string& placeholder) {
  Operand operand = Operand::kText;
  for (const std::string& alternative : std::vector<std::string>(absl::StrSplit(placeholder, '|'))) {
    const std::string first = alternative.substr(0, alternative.find_first_of("[,: "));
    if (absl::StrContains(first, "FILE") || absl::StrContains(first, "PATH") || HasExtension(first))
      return Operand::kFile;
    if (first == "DIR") operand = Operand::kFolder;
  }
  return operand;
}

// The type's name, and in `choices` those of a check on them: CLI11 says "TEXT:{auto,on,off}".
std::string TypeName(const CLI::Option& option, std::vector<std::string>& choices) {
  const std::string type = option.get_type_name();
  const size_t open = type.find(":{"), close = type.rfind('}');
  if (open == type.npos || close == type.npos) return type.substr(0, type.find(':'));
  choices = absl::StrSplit(type.substr(open + 2, close - open - 2), ',');
  std::string joined;
  for (const std::string& choice : choices) absl::StrAppend(&joined, joined.empty() ? "" : "|", choice);
  return joined;
}

// What stands without a value, or with one after '='.
void AddOptionalValue(const CLI::Option& option, Argument& argument) {
  const std::string& text = option.get_option_text();  // "[=STAGE,...]"
  const std::string alone =
      option.get_lnames().empty() ? "" : option.get_flag_value(option.get_lnames()[0], "");
  const bool has_text = absl::StartsWith(text, "[=") && absl::EndsWith(text, "]");
  argument.value_is_optional = has_text || (!alone.empty() && alone != "true");
  if (has_text)
    argument.placeholder = text.substr(2, text.size() - 3);
  else if (argument.value_is_optional)
    argument.placeholder = alone;
}

Argument ArgumentOf(const CLI::Option& option) {
  Argument argument;
  argument.help = option.get_description();
  argument.usual = option.get_default_str();
  argument.group = option.get_group();
  for (const std::string& name : option.get_snames()) argument.names.push_back(absl::StrCat("-", name));
  for (const std::string& name : option.get_lnames()) argument.names.push_back(absl::StrCat("--", name));
  if (option.get_positional()) argument.names = {option.get_name(/*positional=*/true)};
  argument.required = option.get_required();
  argument.repeated = option.get_items_expected_max() > 1;
  argument.takes_value = option.get_items_expected_max() > 0;
  if (argument.takes_value)
    argument.placeholder = TypeName(option, argument.choices);
  else
    AddOptionalValue(option, argument);
  if (argument.choices.empty()) {
    const std::vector<std::string> alternatives = absl::StrSplit(argument.placeholder, '|');
    if (alternatives.size() > 1)
      std::copy_if(alternatives.begin(), alternatives.end(), std::back_inserter(argument.choices), IsWord);
  }
  argument.operand = OperandOf(argument.placeholder);
  if (argument.operand == Operand::kFile) argument.choices.clear();
  return argument;
}

}  // namespace

const std::string& Argument::name() const {
  const auto is_long = [](const std::string& name) { return absl::StartsWith(name, "--"); };
  const auto first = std::find_if(names.begin(), names.end(), is_long);
  return first == names.end() ? names.back() : *first;
}

Command CommandOf(const CLI::App& app) {
  Command command;
  command.name = app.get_name();
  command.help = app.get_description();
  for (const CLI::Option* option : app.get_options({})) {
    if (option->get_group().empty()) continue;  // hidden
    (option->get_positional() ? command.positionals : command.options).push_back(ArgumentOf(*option));
  }
  for (const CLI::App* sub : app.get_subcommands({})) command.commands.push_back(CommandOf(*sub));
  command.runs_program = app.get_prefix_command();
  return command;
}

void AddWords(const Words& words, Command& command) {
  for (Argument& option : command.options) {
    const auto found = words.find(option.name());
    if (found == words.end() || !option.choices.empty()) continue;
    std::copy_if(found->second.begin(), found->second.end(), std::back_inserter(option.choices), IsWord);
  }
  for (Command& sub : command.commands) AddWords(words, sub);
}

std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
}

}  // namespace ft::manual
