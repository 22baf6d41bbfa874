// ftexec with emulated GPUs in place of real ones, for tests of whole runs. What the machine looks like comes
// from the environment variable FT_EMULATED_MACHINE: "devices=2,late,major=7,memory=1000000,
// pinnable=1000000,no_driver", any of them.
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "runtime/backends/cuda/emulation/emulated_driver.h"
#include "runtime/collective/nccl/testing/host_nccl.h"
#include "tools/ftexec/main.h"

namespace ft {
namespace {

// False when the description makes no sense.
bool Describe(const char* text, cuda::emulation::EmulatedMachine& machine) {
  for (const auto part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> setting = absl::StrSplit(part, absl::MaxSplits('=', 1));
    const auto& [name, value] = setting;
    if (name == "late") {
      machine.schedule = cuda::emulation::Schedule::kLate;
    } else if (name == "no_driver") {
      machine.no_driver = "no CUDA driver was found (emulated)";
    } else if (name == "devices") {
      if (!absl::SimpleAtoi(value, &machine.devices)) return false;
    } else if (name == "major") {
      if (!absl::SimpleAtoi(value, &machine.properties.major)) return false;
    } else if (name == "memory") {
      if (!absl::SimpleAtoi(value, &machine.properties.total_bytes)) return false;
      machine.others_bytes = 0;
    } else if (name == "pinnable") {
      if (!absl::SimpleAtoi(value, &machine.pinnable_bytes)) return false;
    } else {
      return false;
    }
  }
  return true;
}

absl::StatusOr<std::shared_ptr<nccl::NcclApi>> MakeNccl() { return std::make_shared<testing::HostNccl>(); }

}  // namespace
}  // namespace ft

int main(int argc, char** argv) {
  ft::cuda::emulation::Machine().devices = 8;
  const char* machine = std::getenv("FT_EMULATED_MACHINE");
  if (machine != nullptr && !ft::Describe(machine, ft::cuda::emulation::Machine())) {
    std::cerr << "FT_EMULATED_MACHINE=" << machine << " is not understood\n";
    return 2;
  }
  return ft::Main(argc, argv, ft::MakeNccl);
}
