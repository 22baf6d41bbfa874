#include "tools/manual/man_page.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace ft::manual {
namespace {

std::string Upper(std::string upper) {
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  return upper;
}

// Text as roff reads it literally; a line that starts with a dot or a quote would be a request.
std::string Roff(const std::string& text) {
  std::string escaped = absl::StrReplaceAll(
      text, {{"\\", "\\e"}, {"-", "\\-"}, {"~", "\\(ti"}, {"^", "\\(ha"}, {"`", "\\(ga"}, {"'", "\\(aq"}});
  return !escaped.empty() && escaped[0] == '.' ? absl::StrCat("\\&", escaped) : escaped;
}

std::string Paragraphs(const std::string& text) {
  std::string made;
  for (const std::string& line : Lines(text))
    absl::StrAppend(&made, made.empty() ? "" : ".PP\n", Roff(line), "\n");
  return made;
}

// "\-\-peak[=20]", "\-\-steps=N", "\-o FILE, \-\-output=FILE"
std::string Spelled(const Argument& option) {
  std::vector<std::string> spelled;
  for (const std::string& name : option.names) {
    const bool is_long = name.rfind("--", 0) == 0;
    std::string text = absl::StrCat("\\fB", Roff(name), "\\fR");
    const std::string value = absl::StrCat("\\fI", Roff(option.placeholder), "\\fR");
    if (option.value_is_optional) absl::StrAppend(&text, "[=", value, "]");
    if (option.takes_value) absl::StrAppend(&text, is_long ? "=" : " ", value);
    spelled.push_back(text);
  }
  return absl::StrJoin(spelled, ", ");
}

void AppendArguments(const std::vector<Argument>& arguments, const char* heading, std::string& text) {
  std::string group;
  for (const Argument& argument : arguments) {
    const bool is_positional = argument.names[0][0] != '-';
    if (!is_positional && argument.group != group)
      absl::StrAppend(&text, heading, " \"", Roff(group = argument.group), "\"\n");
    absl::StrAppend(&text, ".TP\n",
                    is_positional ? absl::StrCat("\\fI", Roff(argument.names[0]), "\\fR") : Spelled(argument),
                    "\n", Roff(argument.help),
                    argument.usual.empty() ? "" : absl::StrCat(" (", Roff(argument.usual), " unless given)"),
                    "\n");
  }
}

// "ftc compile [OPTIONS] model"
std::string Synopsis(const Command& command, const std::string& path) {
  std::string text = absl::StrCat("\\fB", Roff(path), "\\fR [\\fIOPTIONS\\fR]");
  if (command.runs_program) return absl::StrCat(text, " \\fIPROGRAM\\fR [\\fIARGUMENTS\\fR]");
  for (const Argument& positional : command.positionals) {
    const std::string name =
        absl::StrCat("\\fI", Roff(positional.names[0]), "\\fR", positional.repeated ? "..." : "");
    absl::StrAppend(&text, " ", positional.required ? name : absl::StrCat("[", name, "]"));
  }
  return text;
}

void AppendSynopsis(const Command& command, std::string& text) {
  absl::StrAppend(&text, ".SH SYNOPSIS\n");
  if (command.commands.empty()) absl::StrAppend(&text, Synopsis(command, command.name), "\n");
  for (const Command& sub : command.commands)
    absl::StrAppend(&text, &sub == &command.commands[0] ? "" : ".br\n",
                    Synopsis(sub, absl::StrCat(command.name, " ", sub.name)), "\n");
}

void AppendCommands(const Command& command, std::string& text) {
  if (command.commands.empty()) return;
  absl::StrAppend(&text, ".SH COMMANDS\n");
  for (const Command& sub : command.commands) {
    absl::StrAppend(&text, ".SS \"", Roff(absl::StrCat(command.name, " ", sub.name)), "\"\n",
                    Paragraphs(sub.help));
    AppendArguments(sub.positionals, "", text);
    AppendArguments(sub.options, ".PP\n.B", text);
  }
}

using Terms = std::vector<std::pair<std::string, std::string>>;

void AppendTerms(const char* heading, const Terms& terms, std::string& text) {
  if (terms.empty()) return;
  absl::StrAppend(&text, ".SH \"", heading, "\"\n");
  for (const auto& [term, meaning] : terms)
    absl::StrAppend(&text, ".TP\n\\fB", Roff(term), "\\fR\n", Roff(meaning), "\n");
}

}  // namespace

std::string ManPage(const Command& command, const Page& page, const std::string& version) {
  const std::vector<std::string> about = Lines(command.help);
  std::string summary = about[0].substr(0, about[0].find(". "));
  if (!summary.empty() && summary.back() == '.') summary.pop_back();
  summary[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(summary[0])));
  std::string text = absl::StrCat(".\\\" Made from the tables of options that ", command.name,
                                  " is built with.\n.TH ", Upper(command.name), " 1 \"\" \"ft ", version,
                                  "\" \"User Commands\"\n.nh\n.ad l\n.SH NAME\n", command.name, " \\- ",
                                  Roff(summary), "\n");
  AppendSynopsis(command, text);
  absl::StrAppend(&text, ".SH DESCRIPTION\n", Roff(about[0]), "\n");
  for (const std::string& paragraph : page.description)
    absl::StrAppend(&text, ".PP\n", Roff(paragraph), "\n");
  AppendCommands(command, text);
  absl::StrAppend(&text, ".SH OPTIONS\n");
  AppendArguments(command.positionals, "", text);
  AppendArguments(command.options, ".SS", text);
  AppendTerms("ENVIRONMENT", page.environment, text);
  AppendTerms("EXIT STATUS", page.exits, text);
  AppendTerms("EXAMPLES", page.examples, text);
  if (!page.see_also.empty())
    absl::StrAppend(&text, ".SH \"SEE ALSO\"\n", Roff(absl::StrJoin(page.see_also, ", ")), "\n");
  return text;
}

}  // namespace ft::manual
