#include "runtime/backends/cpu/mapped_code.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "fmt/format.h"
#include "runtime/base/status_macros.h"

namespace ft::cpu {
namespace {

MappedCode::Entry EntryAt(void* memory, uint64_t offset) {
  return reinterpret_cast<MappedCode::Entry>(static_cast<char*>(memory) + offset);
}

}  // namespace

std::string_view CodeTarget(Isa isa) {
  if (isa == Isa::kX86V3) return "x86-64-v3";
  if (isa >= Isa::kX86V4) return "x86-64-v4";
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v2")) return "x86-64-v2";
#endif
  return "";
}

MappedCode::MappedCode(void* memory, const ClusterCode& code)
    : memory_(memory),
      bytes_(code.bytes.size()),
      kernel_(EntryAt(memory, code.kernel)),
      combine_(EntryAt(memory, code.combine)) {}

MappedCode::~MappedCode() { munmap(memory_, bytes_); }

absl::StatusOr<std::shared_ptr<const MappedCode>> MappedCode::Map(const ClusterCode& code) {
  const size_t bytes = code.bytes.size();
  const auto failure = [&] {
    return absl::ResourceExhaustedError(
        fmt::format("cannot map {} bytes of code: {}", bytes, std::strerror(errno)));
  };
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return failure();
  std::memcpy(memory, code.bytes.data(), bytes);
  if (mprotect(memory, bytes, PROT_READ | PROT_EXEC) != 0) {
    const absl::Status status = failure();
    munmap(memory, bytes);
    return status;
  }
  return std::shared_ptr<const MappedCode>(new MappedCode(memory, code));
}

absl::StatusOr<std::shared_ptr<const MappedCode>> CodeOf(const Cluster& cluster, Isa isa) {
  if (cluster.loaded != nullptr) return std::static_pointer_cast<const MappedCode>(cluster.loaded);
  const std::string_view target = CodeTarget(isa);
  for (const ClusterCode& code : cluster.codes) {
    if (code.target != target) continue;
    FT_ASSIGN_OR_RETURN(std::shared_ptr<const MappedCode> mapped, MappedCode::Map(code));
    cluster.loaded = mapped;
    return mapped;
  }
  return std::shared_ptr<const MappedCode>();
}

}  // namespace ft::cpu
