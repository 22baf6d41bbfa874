#include "runtime/base/printable.h"

#include <algorithm>

#include "fmt/format.h"

namespace ft {
namespace {

// A sequence of UTF-8 that a terminal obeys or that changes how its neighbours are shown.
bool IsControl(std::string_view sequence) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(sequence[i]); };
  if (sequence.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7F;
  if (sequence.size() == 2) return byte(0) == 0xC2 && byte(1) < 0xA0;  // U+0080 to U+009F
  if (sequence.size() != 3) return false;
  // U+200E, U+200F; U+2028 to U+202E: ends of lines, embeddings, overrides; U+2066 to U+2069: isolates.
  if (byte(0) == 0xE2 && byte(1) == 0x80)
    return byte(2) == 0x8E || byte(2) == 0x8F || (byte(2) >= 0xA8 && byte(2) <= 0xAE);
  if (byte(0) == 0xE2 && byte(1) == 0x81) return byte(2) >= 0xA6 && byte(2) <= 0xA9;
  return byte(0) == 0xEF && byte(1) == 0xBB && byte(2) == 0xBF;  // a byte order mark
}

void AppendEscaped(std::string_view bytes, std::string& line) {
  for (const char c : bytes) line += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
}

// The next unit of `text`, at least one byte, taken from it.
std::string_view Take(std::string_view& text, bool& is_text) {
  const size_t length = Utf8SequenceLength(text);
  const std::string_view unit = text.substr(0, std::max<size_t>(1, length));
  is_text = length > 0 && !IsControl(unit);
  text.remove_prefix(unit.size());
  return unit;
}

std::string Escape(std::string_view text, bool keeps_lines) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    bool is_text = false;
    const std::string_view unit = Take(text, is_text);
    if (is_text || (keeps_lines && (unit == "\n" || unit == "\t"))) {
      result += unit;
    } else if (unit == "\n") {
      result += "\\n";
    } else {
      AppendEscaped(unit, result);
    }
  }
  return result;
}

// The longest beginning of at most `bytes` that cuts no sequence.
std::string_view Head(std::string_view text, size_t bytes) {
  size_t end = 0;
  while (end < text.size()) {
    const size_t next = end + std::max<size_t>(1, Utf8SequenceLength(text.substr(end)));
    if (next > bytes) break;
    end = next;
  }
  return text.substr(0, end);
}

// The end of at most `bytes` that begins with a sequence.
std::string_view Tail(std::string_view text, size_t bytes) {
  text.remove_prefix(text.size() - std::min(text.size(), bytes));
  while (!text.empty() && (static_cast<unsigned char>(text[0]) & 0xC0) == 0x80) text.remove_prefix(1);
  return text;
}

}  // namespace

size_t Utf8SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  if (text.empty()) return 0;
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                        : first >= 0xE0 && first <= 0xEF ? 3
                        : first >= 0xF0 && first <= 0xF4 ? 4
                                                         : 0;
  const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (length == 0 || byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  }
  return length;
}

std::string Printable(std::string_view text) { return Escape(text, /*keeps_lines=*/true); }

std::string OneLine(std::string_view text, size_t max_bytes) {
  // A text of megabytes is not escaped as a whole: of its two ends more than a line is never needed.
  std::string line = Escape(text.substr(0, max_bytes + 1), /*keeps_lines=*/false);
  if (text.size() <= max_bytes && line.size() <= max_bytes) return line;
  const std::string end = Escape(Tail(text, max_bytes), /*keeps_lines=*/false);
  const std::string note = fmt::format("[... of {} bytes ...]", text.size());
  const size_t room = max_bytes - std::min(max_bytes, note.size());
  const std::string_view tail = Tail(end, room / 4);
  return fmt::format("{}{}{}", Head(line, room - tail.size()), note, tail);
}

std::string Quote(std::string_view name) { return fmt::format("'{}'", OneLine(name, kMaxNameBytes)); }

}  // namespace ft
