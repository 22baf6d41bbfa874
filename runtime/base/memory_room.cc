#include "runtime/base/memory_room.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>

namespace ft {
namespace {

// Of files under /proc and /sys, which have no size; empty when there is none.
std::string ContentsOf(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return in ? text.str() : "";
}

std::optional<uint64_t> NumberIn(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end != text.data() ? std::optional(number) : std::nullopt;
}

// The number behind `name` at the beginning of a line.
std::optional<uint64_t> NumberBehind(std::string_view text, std::string_view name) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.substr(0, name.size()) == name) return NumberIn(line.substr(name.size()));
    at = end + 1;
  }
  return std::nullopt;
}

// The files by which the two versions of cgroups say the same.
struct CgroupFiles {
  const char* mount;
  const char* limit;
  const char* used;
  const char* cache[2];  // lines of memory.stat: pages of files, which can go
};
constexpr CgroupFiles kVersion2 = {
    "/sys/fs/cgroup", "/memory.max", "/memory.current", {"inactive_file ", "active_file "}};
constexpr CgroupFiles kVersion1 = {"/sys/fs/cgroup/memory",
                                   "/memory.limit_in_bytes",
                                   "/memory.usage_in_bytes",
                                   {"total_inactive_file ", "total_active_file "}};
// What version 1 says where there is no limit, and more than any machine has.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;

std::optional<uint64_t> RoomOf(const std::string& root, const CgroupFiles& files, const std::string& group) {
  const std::string folder = root + files.mount + group;
  const std::optional<uint64_t> limit = NumberIn(ContentsOf(folder + files.limit));  // "max" is none
  const std::optional<uint64_t> used = NumberIn(ContentsOf(folder + files.used));
  if (!limit.has_value() || *limit >= kNoLimit || !used.has_value()) return std::nullopt;
  const std::string parts = ContentsOf(folder + "/memory.stat");
  uint64_t cache = 0;
  for (const char* part : files.cache) cache += NumberBehind(parts, part).value_or(0);
  const uint64_t taken = *used - std::min(*used, cache);
  return *limit - std::min(*limit, taken);
}

// "0::/a/b" of version 2, "7:memory:/a/b" of version 1; nothing for lines of others.
const CgroupFiles* VersionOf(std::string_view controllers) {
  if (controllers.empty()) return &kVersion2;
  for (size_t at = 0; at <= controllers.size();) {
    const size_t end = std::min(controllers.find(',', at), controllers.size());
    if (controllers.substr(at, end - at) == "memory") return &kVersion1;
    at = end + 1;
  }
  return nullptr;
}

// The group and those above it. A group that is not seen under its name, as in a container, is the root that
// is seen there.
void AddGroups(const std::string& root, const CgroupFiles& files, std::string group,
               const std::string& system, std::vector<MemoryPool>& pools) {
  if (group == "/") group.clear();
  while (true) {
    if (const std::optional<uint64_t> room = RoomOf(root, files, group); room.has_value()) {
      pools.push_back({.name = "memory limit of cgroup " + (group.empty() ? "/" : group),
                       .system = system,
                       .room = *room});
    }
    if (group.empty()) return;
    group.resize(std::min(group.rfind('/'), group.size()));
  }
}

}  // namespace

std::vector<MemoryPool> MemoryPoolsOfProcess(const std::string& root) {
  std::vector<MemoryPool> pools;
  std::string system = ContentsOf(root + "/proc/sys/kernel/random/boot_id");
  system.resize(std::min(system.find('\n'), system.size()));
  std::istringstream groups(ContentsOf(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const CgroupFiles* files = VersionOf(std::string_view(line).substr(first + 1, second - first - 1));
    std::string group = line.substr(second + 1);
    if (files == nullptr || group.empty() || group[0] != '/' || group.find("/..") != group.npos) group = "/";
    if (files != nullptr) AddGroups(root, *files, std::move(group), system, pools);
  }
  const std::string memory = ContentsOf(root + "/proc/meminfo");
  if (const std::optional<uint64_t> kib = NumberBehind(memory, "MemAvailable:"); kib.has_value())
    pools.push_back({.name = "memory of the host", .system = system, .room = *kib << 10});
  return pools;
}

std::optional<uint64_t> AddressSpaceLeft() {
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  const std::optional<uint64_t> kib = NumberBehind(ContentsOf("/proc/self/status"), "VmSize:");
  if (!kib.has_value()) return std::nullopt;
  return limit.rlim_cur - std::min<uint64_t>(limit.rlim_cur, *kib << 10);
}

}  // namespace ft
