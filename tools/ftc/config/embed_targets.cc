// Run while the project is built: reads the machines in runtime/targets and writes them as C++, so that
// programs have them wherever they run, and no need for a YAML parser. Usage: embed_targets OUT.cc
// FILE.yaml...
#include <cstdio>
#include <string>

#include "fmt/format.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/exit_status.h"
#include "tools/ftc/config/target_file.h"

namespace {

// A row of the table: the target, serialised.
std::string Row(const ft::Target& target) {
  const std::string bytes = target.SerializeAsString();
  std::string text = "    {\"";
  for (const unsigned char byte : bytes) text += fmt::format("\\{:03o}", byte);
  return text + fmt::format("\", {}}},  // {}\n", bytes.size(), target.name());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: embed_targets OUT.cc FILE.yaml...\n", stderr);
    return ft::kExitUsage;
  }
  std::string text =
      "// Written by embed_targets from runtime/targets/*.yaml.\n#include "
      "\"runtime/targets/embedded_targets.h\"\n\n"
      "namespace ft {\n\nconst EmbeddedTarget kEmbeddedTargets[] = {\n";
  for (int i = 2; i < argc; ++i) {
    const absl::StatusOr<ft::Target> target = ftc::ReadTarget(argv[i]);
    if (!target.ok()) {
      std::fprintf(stderr, "embed_targets: %s\n", std::string(target.status().message()).c_str());
      return ft::ExitStatus(target.status());
    }
    text += Row(*target);
  }
  text += fmt::format("}};\nconst int kNumEmbeddedTargets = {};\n\n}}  // namespace ft\n", argc - 2);
  const absl::Status status = ft::WriteFileAtomically(argv[1], text);
  if (!status.ok()) std::fprintf(stderr, "embed_targets: %s\n", std::string(status.message()).c_str());
  return ft::ExitStatus(status);
}
