// Run while the project is built: puts the parts of the report's page together and writes them as C++, in two
// halves between which its data goes. The content policy names the hashes of style and scripts, so that
// nothing else runs. Usage: embed_page OUT.cc page.html style.css d3.js SCRIPT.js... -- NOTICE-OF-D3...
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "fmt/format.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/SHA256.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status_macros.h"

namespace {

absl::StatusOr<std::string> Read(const char* path) {
  FT_ASSIGN_OR_RETURN(const ft::MappedFile file,
                      ft::MappedFile::Open(path, ft::MappedFile::Access::kSequential));
  return std::string(file.bytes().begin(), file.bytes().end());
}

// As a content policy names an element by what is in it.
std::string PolicyHash(const std::string& text) {
  llvm::SHA256 hash;
  hash.update(llvm::StringRef(text));
  return fmt::format("'sha256-{}'", llvm::encodeBase64(hash.final()));
}

std::string EscapeHtml(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

// Lines of a string literal.
std::string Literal(const std::string& text) {
  std::string literal;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    literal += "\n    \"";
    for (const unsigned char byte : line) {
      const bool plain = byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\' && byte != '?';
      literal += plain ? std::string(1, static_cast<char>(byte)) : fmt::format("\\{:03o}", byte);
    }
    literal += "\\n\"";
  }
  return literal;
}

absl::Status Embed(const std::vector<const char*>& paths) {
  FT_ASSIGN_OR_RETURN(std::string page, Read(paths[1]));
  FT_ASSIGN_OR_RETURN(const std::string style, Read(paths[2]));
  FT_ASSIGN_OR_RETURN(const std::string d3, Read(paths[3]));
  std::string script = "\"use strict\";\n(() => {\n";
  std::string notices;
  std::string* whole = &script;
  for (size_t i = 4; i < paths.size(); ++i) {
    if (absl::string_view(paths[i]) == "--") {
      whole = &notices;
      continue;
    }
    FT_ASSIGN_OR_RETURN(const std::string part, Read(paths[i]));
    *whole += part;
  }
  script += "})();\n";
  if (d3.find("</script") != std::string::npos || script.find("</script") != std::string::npos)
    return absl::InvalidArgumentError("a script ends its own element");
  const std::string policy =
      fmt::format("default-src 'none'; base-uri 'none'; form-action 'none'; style-src {}; script-src {} {}",
                  PolicyHash(style), PolicyHash(d3), PolicyHash(script));
  page = absl::StrReplaceAll(page, {{"@POLICY@", policy},
                                    {"@STYLE@", style},
                                    {"@D3@", d3},
                                    {"@D3_NOTICE@", EscapeHtml(notices)},
                                    {"@SCRIPT@", script}});
  const std::vector<std::string> halves = absl::StrSplit(page, "@DOCUMENT@");
  if (halves.size() != 2) return absl::InvalidArgumentError("the page wants one place for its data");
  return ft::WriteFileAtomically(
      paths[0],
      fmt::format("// Written by embed_page from tools/ftc/report/page and d3.\n"
                  "#include \"tools/ftc/report/page.h\"\n\nnamespace ftc {{\n\n"
                  "const char kPageBeforeDocument[] ={};\n\nconst char kPageAfterDocument[] ={};\n\n"
                  "}}  // namespace ftc\n",
                  Literal(halves[0]), Literal(halves[1])));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) {
    std::fputs("usage: embed_page OUT.cc page.html style.css d3.js SCRIPT.js... -- NOTICE-OF-D3...\n",
               stderr);
    return ft::kExitUsage;
  }
  const absl::Status status = Embed({argv + 1, argv + argc});
  if (!status.ok()) std::fprintf(stderr, "embed_page: %s\n", std::string(status.message()).c_str());
  return ft::ExitStatus(status);
}
