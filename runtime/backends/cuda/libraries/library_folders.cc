#include "runtime/backends/cuda/libraries/library_folders.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace ft::cuda {
namespace {

namespace fs = std::filesystem;

// Folders are looked at as they are found: what cannot be read is passed over.
bool IsFolder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

std::vector<fs::path> FoldersIn(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (IsFolder(entry->path())) found.push_back(entry->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// The numbers of "cuda-13.0" behind "cuda-", of "python3.12" behind "python"; none for another name.
std::optional<std::vector<int>> VersionIn(const std::string& name, absl::string_view prefix) {
  if (!absl::StartsWith(name, prefix) || name.size() == prefix.size()) return std::nullopt;
  std::vector<int> version;
  absl::string_view numbers = absl::string_view(name).substr(prefix.size());
  absl::ConsumeSuffix(&numbers, "t");  // python3.13t: the one without a global lock
  for (const absl::string_view part : absl::StrSplit(numbers, '.')) {
    int number = 0;
    if (!absl::SimpleAtoi(part, &number) || number < 0) return std::nullopt;
    version.push_back(number);
  }
  return version;
}

// The folders named so in `folder`, the newest first.
std::vector<fs::path> NewestFirst(const fs::path& folder, absl::string_view prefix) {
  std::vector<std::pair<std::vector<int>, fs::path>> versions;
  for (const fs::path& each : FoldersIn(folder)) {
    const auto version = VersionIn(each.filename().string(), prefix);
    if (version.has_value()) versions.emplace_back(*version, each);
  }
  std::sort(versions.begin(), versions.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<fs::path> paths;
  for (auto& [version, path] : versions) paths.push_back(std::move(path));
  return paths;
}

// What a virtual environment says of itself, "include-system-site-packages = true" for instance; no value
// where it does not.
std::optional<std::string> SettingOf(const fs::path& environment, absl::string_view wanted) {
  std::ifstream file(environment / "pyvenv.cfg");
  for (std::string line; std::getline(file, line);) {
    const std::pair<absl::string_view, absl::string_view> setting =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    if (absl::StripAsciiWhitespace(setting.first) == wanted)
      return absl::AsciiStrToLower(absl::StripAsciiWhitespace(setting.second));
  }
  return std::nullopt;
}

bool IsVirtual(const fs::path& prefix) {
  std::error_code error;
  return fs::exists(prefix / "pyvenv.cfg", error);
}

// "python3.12", where the program that is called so in the end says it; else empty.
std::string InterpreterName(const fs::path& program) {
  std::error_code error;
  const std::string name = fs::canonical(program, error).filename().string();
  const auto version = error ? std::nullopt : VersionIn(name, "python");
  return version.has_value() && version->size() > 1 ? name : "";
}

class Wheels {
 public:
  // Those of the packages below a prefix that one Python sees: of all that lie there where its name is empty.
  void AddPrefix(const fs::path& prefix, const std::string& interpreter) {
    // Debian and its kin keep what is installed beside the system's packages in /usr/local.
    if (prefix == "/usr") AddPrefix("/usr/local", interpreter);
    for (const char* lib : {"lib", "lib64"}) {
      for (const fs::path& python : NewestFirst(prefix / lib, "python")) {
        const std::string name = python.filename().string();
        if (!interpreter.empty() && name != interpreter && name != "python3") continue;
        for (const char* packages : {"site-packages", "dist-packages"}) AddPackages(python / packages);
      }
    }
  }

  std::vector<std::string> Take() { return std::move(folders_); }

 private:
  void AddPackages(const fs::path& packages) {
    for (const fs::path& package : FoldersIn(packages / "nvidia")) {
      std::error_code error;
      const fs::path folder = fs::canonical(package / "lib", error);  // lib64 may be lib
      if (error || !IsFolder(folder) || !seen_.insert(folder).second) continue;
      folders_.push_back((package / "lib").string() + "/");
    }
  }

  std::vector<std::string> folders_;
  std::set<fs::path> seen_;
};

// The first python3 of PATH, as a shell would find it; empty for none.
fs::path PythonOf(const std::string& path) {
  for (const absl::string_view folder : absl::StrSplit(path, ':')) {
    if (!absl::StartsWith(folder, "/")) continue;
    const fs::path program = fs::path(std::string(folder)) / "python3";
    std::error_code error;
    if (fs::is_regular_file(program, error) && access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

// What the Python of PATH sees: of a virtual environment its own packages, and where it says so those of the
// Python that it was made with; else that Python's and the user's.
void AddPython(const PythonVariables& variables, Wheels& wheels) {
  const fs::path program = PythonOf(variables.path);
  if (program.empty()) return;
  const std::string interpreter = InterpreterName(program);
  const fs::path named = program.parent_path().parent_path();
  if (IsVirtual(named)) {
    wheels.AddPrefix(named, interpreter);
    if (SettingOf(named, "include-system-site-packages") != "true") return;
  }
  if (!variables.no_user_site) {
    const std::string base = !variables.user_base.empty() ? variables.user_base
                             : variables.home.empty()     ? ""
                                                          : variables.home + "/.local";
    if (absl::StartsWith(base, "/")) wheels.AddPrefix(base, interpreter);
  }
  std::error_code error;
  const fs::path real = fs::canonical(program, error);
  if (!error) wheels.AddPrefix(real.parent_path().parent_path(), interpreter);
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

PythonVariables PythonVariablesOfProcess() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return {.program_prefix = program.parent_path().parent_path().string(),
          .virtual_env = Variable("VIRTUAL_ENV"),
          .conda_prefix = Variable("CONDA_PREFIX"),
          .path = Variable("PATH"),
          .home = Variable("HOME"),
          .user_base = Variable("PYTHONUSERBASE"),
          .no_user_site = !Variable("PYTHONNOUSERSITE").empty()};
}

std::vector<std::string> WheelFolders(const PythonVariables& variables) {
  Wheels wheels;
  const std::string own = IsVirtual(variables.program_prefix) ? variables.program_prefix : "";
  for (const std::string& prefix : {own, variables.virtual_env, variables.conda_prefix}) {
    if (!absl::StartsWith(prefix, "/")) continue;
    const fs::path path = fs::path(prefix).lexically_normal();
    wheels.AddPrefix(path, InterpreterName(path / "bin/python3"));
  }
  AddPython(variables, wheels);
  return wheels.Take();
}

std::vector<std::string> ToolkitFolders(const std::string& below) {
  std::vector<std::string> folders;
  std::vector<fs::path> toolkits = {fs::path(below) / "cuda"};
  for (fs::path& versioned : NewestFirst(below, "cuda-")) toolkits.push_back(std::move(versioned));
  for (const fs::path& toolkit : toolkits) {
    if (IsFolder(toolkit / "lib64")) folders.push_back((toolkit / "lib64").string() + "/");
  }
  return folders;
}

}  // namespace ft::cuda
