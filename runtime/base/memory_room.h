// How much memory there is for processes of this host, before they take it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ft {

// Memory that processes share, and what is left of it. Processes that name a pool alike take from the same
// one.
struct MemoryPool {
  std::string name;  // "memory of the host", "memory limit of cgroup /slurm/job_7"
  // Tells pools of one name apart: which running system it is.
  std::string system;
  uint64_t room = 0;  // bytes that can be taken without swapping; page cache that can go counts as room
};

// What this process's memory comes out of: the host's, and each group of processes above it that has a limit
// (cgroup v2 or v1), nearest first. Empty where the system says nothing. `root`: where /proc and /sys lie,
// for tests.
std::vector<MemoryPool> MemoryPoolsOfProcess(const std::string& root = "");

// Bytes of addresses that this process may still map below ulimit -v; nullopt: as many as it likes.
std::optional<uint64_t> AddressSpaceLeft();

}  // namespace ft
