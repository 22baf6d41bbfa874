// Which host this process is on, as far as sharing memory goes.
#pragma once

#include <string>

namespace ft {

std::string Hostname();

// Equal for two processes exactly when they run on one booted kernel and see the same /dev/shm: two
// containers on one host differ, unless they share it.
std::string HostIdentity();

}  // namespace ft
