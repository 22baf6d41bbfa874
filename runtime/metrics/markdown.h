// Markdown that shows given text as it is, whatever stands in it: for TensorBoard's tab of texts.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ft {

// `text` as one line (OneLine of printable.h), with what markdown, tables or HTML would read as theirs
// escaped.
std::string MarkdownText(std::string_view text);

// A table of two columns; all cells by MarkdownText.
std::string MarkdownTable(std::string_view name_header, std::string_view value_header,
                          const std::vector<std::pair<std::string, std::string>>& rows);

// A block of lines in which columns stand below each other: printable (printable.h), else as they are.
std::string MarkdownBlock(std::string_view lines);

}  // namespace ft
