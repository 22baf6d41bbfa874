#include "test/doubles/cuda/symbols.h"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

// Where the program's thread_local variables begin on a thread is this one's address less its offset.
extern "C" {
__attribute__((used)) constinit thread_local char ft_emulation_anchor = 1;
}

namespace ft::cuda::emulation {
namespace {

// The file of the running program, for as long as it runs.
class Program {
 public:
  Program() {
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat information;
    if (file >= 0 && fstat(file, &information) == 0) {
      void* data = mmap(nullptr, static_cast<size_t>(information.st_size), PROT_READ, MAP_PRIVATE, file, 0);
      if (data != MAP_FAILED) ReadTables(static_cast<const char*>(data));
    }
    if (file >= 0) close(file);
    dl_iterate_phdr(
        [](dl_phdr_info* first, size_t, void* self) {
          static_cast<Program*>(self)->base_ = first->dlpi_addr;
          return 1;  // the program itself comes first
        },
        this);
  }

  const Elf64_Sym* begin() const { return symbols_; }
  const Elf64_Sym* end() const { return symbols_ + count_; }
  const char* Name(const Elf64_Sym& symbol) const { return names_ + symbol.st_name; }
  uintptr_t base() const { return base_; }

 private:
  void ReadTables(const char* data) {
    const auto* header = reinterpret_cast<const Elf64_Ehdr*>(data);
    const auto* sections = reinterpret_cast<const Elf64_Shdr*>(data + header->e_shoff);
    for (int i = 0; i < header->e_shnum; ++i) {
      if (sections[i].sh_type != SHT_SYMTAB) continue;
      symbols_ = reinterpret_cast<const Elf64_Sym*>(data + sections[i].sh_offset);
      count_ = sections[i].sh_size / sizeof(Elf64_Sym);
      names_ = data + sections[sections[i].sh_link].sh_offset;
    }
  }

  const Elf64_Sym* symbols_ = nullptr;
  size_t count_ = 0;
  const char* names_ = nullptr;
  uintptr_t base_ = 0;
};

const Program& Self() {
  static const Program program;
  return program;
}

// Local names of functions of ft::cuda, lambdas in them included, but for the emulation's own.
bool IsShared(std::string_view name) {
  if (!name.starts_with("_ZZ")) return false;
  const size_t inner = name.find("N2ft4cuda"), other = name.find("NK2ft4cuda");
  const size_t at = std::min(inner, other);
  return at != std::string_view::npos && name.find_first_not_of('Z', 1) == at &&
         name.find("4cuda9emulation") == std::string_view::npos;
}

struct Range {
  ptrdiff_t from_anchor;
  size_t bytes;
};

std::vector<Range> SharedRanges() {
  std::vector<Range> ranges;
  ptrdiff_t anchor = -1;
  for (const Elf64_Sym& symbol : Self()) {
    if (ELF64_ST_TYPE(symbol.st_info) != STT_TLS || symbol.st_shndx == SHN_UNDEF) continue;
    const std::string_view name = Self().Name(symbol);
    if (name == "ft_emulation_anchor") anchor = static_cast<ptrdiff_t>(symbol.st_value);
    if (IsShared(name)) ranges.push_back({static_cast<ptrdiff_t>(symbol.st_value), symbol.st_size});
  }
  if (anchor < 0) return {};
  for (Range& range : ranges) range.from_anchor -= anchor;
  return ranges;
}

const std::vector<Range>& KnownSharedRanges() {
  static const std::vector<Range> ranges = SharedRanges();
  return ranges;
}

std::string Demangle(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  if (status != 0 || text == nullptr) return name;
  std::string result = text;
  std::free(text);
  // Without the parameters, whose types may have brackets too: "(anonymous namespace)".
  int depth = 0;
  for (size_t i = result.size(); result.ends_with(')') && i-- > 0;) {
    depth += result[i] == ')' ? 1 : (result[i] == '(' ? -1 : 0);
    if (depth > 0) continue;
    result.resize(i);
    break;
  }
  if (result.starts_with("void ")) result.erase(0, 5);
  return result;
}

std::string Find(const void* function) {
  const uintptr_t offset = reinterpret_cast<uintptr_t>(function) - Self().base();
  for (const Elf64_Sym& symbol : Self()) {
    if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value == offset &&
        symbol.st_shndx != SHN_UNDEF)
      return Demangle(Self().Name(symbol));
  }
  return "a kernel";
}

}  // namespace

std::string NameOf(const void* function) {
  static std::mutex mutex;
  static std::map<const void*, std::string> known;
  std::lock_guard lock(mutex);
  auto [at, added] = known.try_emplace(function);
  if (added) at->second = Find(function);
  return at->second;
}

void SpoilStaticShared(int pattern) {
  for (const Range& range : KnownSharedRanges())
    std::memset(&ft_emulation_anchor + range.from_anchor, pattern, range.bytes);
}

AddressRange StaticShared() {
  static const Range all = [] {
    ptrdiff_t begin = 0, end = 0;
    for (const Range& range : KnownSharedRanges()) {
      begin = std::min(begin, range.from_anchor);
      end = std::max(end, range.from_anchor + static_cast<ptrdiff_t>(range.bytes));
    }
    return Range{begin, static_cast<size_t>(end - begin)};
  }();
  const uintptr_t begin = reinterpret_cast<uintptr_t>(&ft_emulation_anchor) + all.from_anchor;
  return {begin, begin + all.bytes};
}

uintptr_t OffsetInProgram(const void* code) { return reinterpret_cast<uintptr_t>(code) - Self().base(); }

}  // namespace ft::cuda::emulation
