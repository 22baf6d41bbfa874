// Writes the options of passes that are settings as TableGen: for each pass a list that its passes.td takes
// in, with the names, types, defaults and meanings of settings.def. settings_td FILE
#include <fstream>
#include <map>
#include <string>

#include "runtime/base/setting_value.h"

namespace {

// As a string of TableGen.
std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char c : text)
    result += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return result + "\"";
}

std::string optionOf(const std::string &type, const std::string &name, const std::string &usual,
                     const std::string &help) {
  const std::string names = quoted(name) + ", " + quoted(ft::SettingFlag(name)) + ", ";
  if (type == "std::vector<std::string>")
    return "ListOption<" + names + "\"std::string\", " + quoted(help) + ">";
  return "Option<" + names + quoted(type) + ", " + quoted(usual) + ", " + quoted(help) + ">";
}

} // namespace

int main(int argc, char **argv) {
  std::map<std::string, std::string> lists;
  const auto add = [&](const std::string &pass, const std::string &option) {
    if (pass == "none")
      return;
    std::string &list = lists[pass];
    list += (list.empty() ? "  " : ",\n  ") + option;
  };
#define FT_SETTING(TYPE, NAME, DEFAULT, PASS, VALUE, PLACEHOLDER, HELP, ...)                                 \
  add(#PASS, optionOf(#TYPE, #NAME, #DEFAULT, HELP));
#define FT_FIELD(TYPE, NAME, DEFAULT, PASS, HELP) add(#PASS, optionOf(#TYPE, #NAME, #DEFAULT, HELP));
#include "runtime/base/settings.def"
  std::ofstream out(argc > 1 ? argv[1] : "/dev/stdout");
  out << "#ifndef FT_SETTINGS\n#define FT_SETTINGS\n\ninclude \"mlir/Pass/PassBase.td\"\n";
  for (const auto &[pass, list] : lists)
    out << "\ndefvar " << pass << "Settings = [\n" << list << "\n];\n";
  out << "\n#endif\n";
  return out.flush() ? 0 : 1;
}
