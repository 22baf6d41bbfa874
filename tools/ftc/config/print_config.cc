#include <algorithm>

#include "fmt/format.h"
#include "tools/ftc/config/configure.h"
#include "tools/ftc/config/foreign_keys.h"
#include "tools/ftc/config/settings.h"

namespace ftc {
namespace {

// As a YAML scalar: plain where every reader takes it for a text or a number, else in single quotes. (Values
// have no control characters; see SetNames.)
std::string Scalar(const std::string& text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_./+-:,").find(c) != std::string_view::npos;
  };
  const bool plain = !text.empty() && std::isalnum(static_cast<unsigned char>(text[0])) != 0 &&
                     text.back() != ':' && std::all_of(text.begin(), text.end(), is_plain);
  if (plain) return text;
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

std::string Source(const Setting& setting, const Origin& origin) {
  switch (origin.from) {
    case Origin::From::kDefault:
      return "default";
    case Origin::From::kFlag:
      return "flag " + origin.key;
    case Origin::From::kProgram:
    case Origin::From::kChosen:
      return origin.key;
    case Origin::From::kFile:
      break;
  }
  const std::string key = origin.key == setting.name ? "" : fmt::format(" ({})", origin.key);
  return fmt::format("{}:{}{}", origin.file, origin.line, key);
}

// Names in a table's cell.
std::string Cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2) text.insert(at, "\\");
  return text;
}

std::string SynonymsText(const Setting& setting) {
  std::string text;
  for (const auto& [from, to] : setting.value.synonyms)
    text += fmt::format("{}`{}`: `{}`", text.empty() ? " Also " : ", ", from, to);
  return text.empty() ? "" : text + ".";
}

}  // namespace

std::string PrintConfig(const Effective& effective) {
  std::string text = "# The whole configuration; a comment says where a value comes from.\n";
  std::string group;
  for (size_t i = 0; i < Settings().size(); ++i) {
    const Setting& setting = Settings()[i];
    if (!setting.stands_for.empty()) continue;  // those that it stands for are here
    if (setting.group != group) text += fmt::format("\n# {}\n", group = setting.group);
    const std::string line = setting.name + ": " + Scalar(setting.value.show(effective.configuration));
    text += fmt::format("{:<40} # {}\n", line, Source(setting, effective.origins[i]));
  }
  return text;
}

std::string SettingsAsMarkdown() {
  std::string text, group;
  for (const Setting& setting : Settings()) {
    if (setting.group != group) {
      group = setting.group;
      text += fmt::format("{}### {}\n\n| key and flag | values | default | meaning |\n|---|---|---|---|\n",
                          text.empty() ? "" : "\n", group);
    }
    const std::string shown = setting.value.show(Configuration());
    text +=
        fmt::format("| `{}`, `--{}={}` | {}.{} | {} | {} |\n", setting.name, ft::SettingFlag(setting.name),
                    Cell(setting.placeholder), Cell(setting.value.type), Cell(SynonymsText(setting)),
                    shown.empty() ? "required" : "`" + shown + "`", Cell(setting.help));
  }
  text +=
      "\n### Spellings of FSDP, DeepSpeed, Accelerate and Hugging Face\n\n| key | setting | values "
      "|\n|---|---|---|\n";
  for (const Setting& setting : Settings()) {
    for (const Alias& alias : setting.aliases) {
      const std::string& doc = alias.converter.doc;
      text += fmt::format("| `{}` | `{}` | {} |\n", alias.key, setting.name,
                          doc.empty() ? "the same" : Cell(doc));
    }
  }
  using Use = ForeignKey::Use;
  text += "\n### Keys that are accepted and have no effect\n\n| key | why |\n|---|---|\n";
  for (const ForeignKey& key : ForeignKeys()) {
    if (key.use != Use::kRefused) text += fmt::format("| `{}` | {} |\n", key.key, key.reason);
  }
  text +=
      "\n### Keys that are refused unless their value asks for nothing\n\n| key | why | asks for nothing |\n"
      "|---|---|---|\n";
  for (const ForeignKey& key : ForeignKeys()) {
    if (key.use == Use::kRefused)
      text += fmt::format("| `{}` | {} | {} |\n", key.key, key.reason, JoinWords(key.at_rest, ", "));
  }
  return text;
}

}  // namespace ftc
