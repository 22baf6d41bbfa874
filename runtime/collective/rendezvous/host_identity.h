// Which host this process is on.
#pragma once

#include <string>

namespace ft {

std::string Hostname();

// Equal for two processes exactly when they run on one booted kernel and see the same /dev/shm: two
// containers on one host differ, unless they share it.
std::string HostIdentity();

// Equal for two processes on one booted kernel, whatever containers they are in: devices have the same
// addresses for both.
std::string MachineIdentity();

}  // namespace ft
