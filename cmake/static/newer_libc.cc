// What Debian's archives ask of glibc that is newer than 2.34. Defined here, a program linked with them also
// starts on systems as old as Red Hat Enterprise Linux 9 and Ubuntu 22.04.
#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

#include <cstdint>

namespace {

struct Search {
  uintptr_t address;
  dl_find_object* found;
};

// Of each object that is loaded; 1 ends the search.
int Visit(dl_phdr_info* info, size_t, void* data) {
  const auto* search = static_cast<const Search*>(data);
  uintptr_t begin = 0, end = 0, unwinding = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) & part = info->dlpi_phdr[i];
    const uintptr_t from = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_GNU_EH_FRAME) unwinding = from;
    if (part.p_type != PT_LOAD || search->address < from || search->address - from >= part.p_memsz) continue;
    begin = from;
    end = from + part.p_memsz;
  }
  if (end == 0) return 0;
  *search->found = {};
  search->found->dlfo_map_start = reinterpret_cast<void*>(begin);
  search->found->dlfo_map_end = reinterpret_cast<void*>(end);
  search->found->dlfo_eh_frame = reinterpret_cast<void*>(unwinding);
  return 1;
}

}  // namespace

// glibc 2.36, of libstdc++ (std::random_device).
extern "C" uint32_t arc4random() noexcept {
  uint32_t value = 0;
  // Fails only without the system call, which is older than any driver for our GPUs.
  if (getentropy(&value, sizeof(value)) != 0) value = 0;
  return value;
}

// glibc 2.35, of libgcc, which unwinds the stack for exceptions: where the tables of the object at an address
// are. 0 when there are some.
extern "C" int _dl_find_object(void* address, dl_find_object* result) noexcept {
  Search search = {.address = reinterpret_cast<uintptr_t>(address), .found = result};
  return dl_iterate_phdr(Visit, &search) == 1 && result->dlfo_eh_frame != nullptr ? 0 : -1;
}
