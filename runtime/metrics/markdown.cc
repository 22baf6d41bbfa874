#include "runtime/metrics/markdown.h"

#include <algorithm>

#include "runtime/base/printable.h"

namespace ft {
namespace {

size_t LongestRun(std::string_view text, char of) {
  size_t longest = 0, run = 0;
  for (char c : text) {
    run = c == of ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

}  // namespace

std::string MarkdownText(std::string_view text) {
  constexpr std::string_view kEscaped = "\\`*_{}[]|";
  std::string out;
  for (char c : OneLine(text)) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      if (kEscaped.find(c) != kEscaped.npos) out += '\\';
      out += c;
    }
  }
  return out;
}

std::string MarkdownTable(std::string_view name_header, std::string_view value_header,
                          const std::vector<std::pair<std::string, std::string>>& rows) {
  std::string table =
      "| " + MarkdownText(name_header) + " | " + MarkdownText(value_header) + " |\n|---|---|\n";
  for (const auto& [name, value] : rows)
    table += "| " + MarkdownText(name) + " | " + MarkdownText(value) + " |\n";
  return table;
}

std::string MarkdownBlock(std::string_view lines) {
  std::string text = Printable(lines);
  if (text.empty() || text.back() != '\n') text += '\n';
  // No line of the text can end a block that begins with more marks than it has in a row.
  const std::string fence(std::max<size_t>(3, LongestRun(text, '`') + 1), '`');
  return fence + "\n" + text + fence + "\n";
}

}  // namespace ft
