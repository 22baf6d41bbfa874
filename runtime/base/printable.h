// Text from files, in messages: what a file holds may be of any length, and any bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ft {

// Length of the UTF-8 sequence at the beginning of `text`, 0 when it begins with none or is empty. (The
// Unicode Standard, table 3-7.)
size_t Utf8SequenceLength(std::string_view text);

// What a terminal would obey or could not show is escaped: control characters but ends of lines and tabs,
// those of Unicode that turn the direction of writing among them, as \xNN of their bytes; so are bytes that
// are not UTF-8.
std::string Printable(std::string_view text);

// Bytes of the longest message and of the longest name in one.
inline constexpr size_t kMaxLineBytes = 4096;
inline constexpr size_t kMaxNameBytes = 160;

// `text` as one line of at most `max_bytes` (at least 64): printable, ends of lines and tabs escaped too. Of
// a longer text the middle is left out, and the line says how many bytes that were. Made twice, it is the
// same.
std::string OneLine(std::string_view text, size_t max_bytes = kMaxLineBytes);

// A name, key or value as a message quotes it: 'name', at most kMaxNameBytes of it.
std::string Quote(std::string_view name);

}  // namespace ft
