#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tools/manual/completions.h"

namespace ft::manual {
namespace {

// What is the same for all programs. NAME_flags COMMAND prints the flags, with '=' those that take a value;
// NAME_values COMMAND FLAG prints what may follow: words, and @files, @folders or @programs. COMMAND is "-"
// before one.
constexpr char kScript[] = R"sh(
_NAME() {
  local line=${COMP_LINE:0:COMP_POINT} command=- first=0 word flag="" values
  local words=($line) current=""
  [[ $line == *[[:space:]] ]] || { current=${words[-1]}; unset 'words[-1]'; }
  for word in "${words[@]:1}"; do
    [[ $word != -* ]] || continue
    [[ $command == - && " COMMANDS " == *" $word "* ]] && command=$word
    (( ++first ))
  done
  COMPREPLY=()
  if [[ $current == -*=* ]]; then
    flag=${current%%=*}
  elif (( ${#words[@]} > 1 )) && [[ ${words[-1]} == -* && " $(_NAME_flags $command) " == *" ${words[-1]}= "* ]]; then
    flag=${words[-1]}
  elif [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_NAME_flags $command)" -- "$current")
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
    return
  fi
  values=$(_NAME_values $command "${flag:-$(( first == 0 ? 0 : 1 ))}")
  [[ $current == -*=* ]] && current=${current#*=}
  mapfile -t COMPREPLY < <(compgen -W "${values//@*}" -- "$current")
  [[ $values == *@* ]] && compopt -o filenames 2>/dev/null
  [[ $values == *@files* ]] && mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$current")
  [[ $values == *@folders* ]] && mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- "$current")
  [[ $values == *@programs* ]] && mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -c -- "$current")
  # Bash replaces what stands behind the last '=' where that breaks words, else all of the word.
  if [[ -n $flag && $flag != "${words[-1]}" && $COMP_WORDBREAKS != *=* ]]; then
    COMPREPLY=("${COMPREPLY[@]/#/$flag=}")
  fi
}
complete -F _NAME NAME
)sh";

std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string Values(const Argument& argument) {
  std::string values = absl::StrJoin(argument.choices, " ");
  constexpr const char* kOperands[] = {"", " @files", " @folders", " @programs"};
  return absl::StrCat(values, kOperands[static_cast<int>(argument.operand)]);
}

std::string Flags(const std::vector<Argument>& options) {
  std::string flags;
  for (const Argument& option : options)
    absl::StrAppend(&flags, flags.empty() ? "" : " ", option.name(), option.takes_value ? "=" : "");
  return flags;
}

void AppendValues(const Command& command, const std::string& name, std::string& text) {
  for (const Argument& option : command.options) {
    const std::string values = Values(option);
    if (values.empty()) continue;
    std::vector<std::string> patterns;
    for (const std::string& spelled : option.names) patterns.push_back(absl::StrCat(name, ":", spelled));
    absl::StrAppend(&text, "    ", absl::StrJoin(patterns, "|"), ") echo ", Quoted(values), " ;;\n");
  }
  // Positionals: files, as all of ours are.
  if (!command.positionals.empty()) absl::StrAppend(&text, "    ", name, ":[01]) echo @files ;;\n");
  if (command.runs_program)
    absl::StrAppend(&text, "    ", name, ":0) echo @programs ;;\n    ", name, ":1) echo @files ;;\n");
}

}  // namespace

std::string BashCompletion(const Command& command) {
  std::vector<std::string> names;
  for (const Command& sub : command.commands) names.push_back(sub.name);
  const std::string all = absl::StrJoin(names, " ");
  std::string text = absl::StrCat(
      "# bash completion of ", command.name, ", made from the tables of options that it is built with.\n\n_",
      command.name, "_flags() {\n  case $1 in\n    -) echo ", Quoted(Flags(command.options)), " ;;\n");
  for (const Command& sub : command.commands)
    absl::StrAppend(&text, "    ", sub.name, ") echo ", Quoted(Flags(sub.options)), " ;;\n");
  absl::StrAppend(&text, "  esac\n}\n\n_", command.name, "_values() {\n  case $1:$2 in\n");
  if (!names.empty()) absl::StrAppend(&text, "    -:[01]) echo ", Quoted(all), " ;;\n");
  AppendValues(command, "-", text);
  for (const Command& sub : command.commands) AppendValues(sub, sub.name, text);
  absl::StrAppend(&text, "  esac\n}\n",
                  absl::StrReplaceAll(kScript, {{"NAME", command.name}, {"COMMANDS", all}}));
  return text;
}

}  // namespace ft::manual
