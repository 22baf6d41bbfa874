#include "runtime/collective/rendezvous/host_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"

namespace ft {

namespace {

// Empty when the system does not say.
std::string BootId() {
  std::string boot_id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot_id);
  return boot_id;
}

}  // namespace

std::string Hostname() {
  char name[256] = "";
  if (gethostname(name, sizeof(name) - 1) != 0) return "unknown";
  return name;
}

std::string HostIdentity() {
  const std::string boot_id = BootId();
  struct stat shm{};
  if (stat("/dev/shm", &shm) != 0) return absl::StrCat(Hostname(), "/", boot_id, "/no-shm-of-", getpid());
  return absl::StrCat(Hostname(), "/", boot_id, "/", shm.st_dev, ":", shm.st_ino);
}

std::string MachineIdentity() {
  const std::string boot_id = BootId();
  return boot_id.empty() ? Hostname() : boot_id;
}

}  // namespace ft
