#include "runtime/collective/rendezvous/host_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"

namespace ft {

std::string Hostname() {
  char name[256] = "";
  if (gethostname(name, sizeof(name) - 1) != 0) return "unknown";
  return name;
}

std::string HostIdentity() {
  std::string boot_id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot_id);
  struct stat shm{};
  if (stat("/dev/shm", &shm) != 0) return absl::StrCat(Hostname(), "/", boot_id, "/no-shm-of-", getpid());
  return absl::StrCat(Hostname(), "/", boot_id, "/", shm.st_dev, ":", shm.st_ino);
}

}  // namespace ft
