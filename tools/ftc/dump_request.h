// What --dump asks for.
#pragma once

#include <string>
#include <variant>

namespace ftc {

// --dump=STAGE[:@FUNCTION][:LAYER].
struct DumpRequest {
  std::string stage;
  std::string function;  // without '@'; empty: all
  std::string layer;     // a glob; empty: all

  bool all() const { return function.empty() && layer.empty(); }
};

// Errors are in words, for a usage error: an unknown stage, a part that is none.
std::variant<DumpRequest, std::string> ParseDumpRequest(const std::string& text);

}  // namespace ftc
