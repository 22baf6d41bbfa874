// JSON read event by event: nothing throws, nothing nests deeper than its reader asks for, duplicates are
// seen.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace ft {

// Every event that a reader does not override ends the parse with an error. To be used with
// ParseStrictly.
class StrictSax : public nlohmann::json_sax<nlohmann::json> {
 public:
  const std::string& error() const { return error_; }

  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a boolean"); }
  bool number_integer(number_integer_t value) override {
    return Unexpected(fmt::format("the number {}", value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Unexpected(fmt::format("the number {}", value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return Unexpected("the number " + text);
  }
  bool string(string_t& text) override { return Unexpected("the string \"" + text + "\""); }
  bool binary(binary_t&) override { return Unexpected("binary data"); }
  bool start_object(size_t) override { return Unexpected("an object"); }
  bool end_object() override { return Unexpected("the end of an object"); }
  bool start_array(size_t) override { return Unexpected("an array"); }
  bool end_array() override { return Unexpected("the end of an array"); }
  bool key(string_t& name) override { return Unexpected("the key \"" + name + "\""); }

  // `position` counts bytes from 1.
  bool parse_error(size_t position, const std::string& token, const nlohmann::detail::exception&) override {
    return FailAt(position - 1, token);
  }

  // `position` counts bytes from 0.
  bool FailAt(size_t position, std::string_view token) {
    return Fail(fmt::format("is not valid JSON at byte {}, near '{}'", position, token));
  }

 protected:
  bool Fail(std::string error) {
    error_ = std::move(error);
    return false;
  }
  // Says what was found where; `where` is told by the reader.
  bool Unexpected(std::string_view what) { return Fail(fmt::format("has {} {}", what, Where())); }
  virtual std::string Where() const = 0;

 private:
  std::string error_;
};

// Reads the whole of `json`; false when `sax` has an error. For nlohmann's reader a text ends at its first
// NUL.
inline bool ParseStrictly(std::string_view json, StrictSax* sax) {
  const size_t nul = json.find('\0');
  if (nul != std::string_view::npos) {
    sax->FailAt(nul, "\\0");
    return false;
  }
  return nlohmann::json::sax_parse(json, sax);
}

}  // namespace ft
