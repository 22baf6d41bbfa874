// ftexec with emulated GPUs in place of real ones, for tests of whole runs. What the machine looks like comes
// from the environment variable FT_EMULATED_MACHINE: "devices=2,late,major=7,memory=1000000,
// pinnable=1000000,no_driver,nccl=23007,context=1000000,no_nvml,unmappable,cudnn_refuses", any of them;
// CUDA_VISIBLE_DEVICES shows some of its devices.
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "test/doubles/cuda/emulated_driver.h"
#include "test/doubles/nccl/host_nccl.h"
#include "tools/ftexec/main.h"

namespace ft {
namespace {

int nccl_version = nccl::kOldestVersion;

// False when the description makes no sense.
bool Describe(const char* text, cuda::emulation::EmulatedMachine& machine) {
  for (const auto part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> setting = absl::StrSplit(part, absl::MaxSplits('=', 1));
    const auto& [name, value] = setting;
    if (name == "late") {
      machine.schedule = cuda::emulation::Schedule::kLate;
    } else if (name == "no_driver") {
      machine.no_driver = "no CUDA driver was found (emulated)";
    } else if (name == "cudnn_refuses") {
      machine.attention_refusal = "no engine (emulated)";
    } else if (name == "no_nvml") {
      machine.knows_used = false;
    } else if (name == "unmappable") {
      machine.mappable_page_bytes = 0;
    } else if (name == "context") {
      if (!absl::SimpleAtoi(value, &machine.context_bytes)) return false;
    } else if (name == "devices") {
      if (!absl::SimpleAtoi(value, &machine.devices)) return false;
    } else if (name == "major") {
      if (!absl::SimpleAtoi(value, &machine.properties.major)) return false;
    } else if (name == "memory") {
      if (!absl::SimpleAtoi(value, &machine.properties.total_bytes)) return false;
      machine.others_bytes = 0;
    } else if (name == "nccl") {
      if (!absl::SimpleAtoi(value, &nccl_version)) return false;
    } else if (name == "pinnable") {
      if (!absl::SimpleAtoi(value, &machine.pinnable_bytes)) return false;
    } else {
      return false;
    }
  }
  return true;
}

// As CUDA does: the devices before the first number that is none.
void Show(const char* visible, cuda::emulation::EmulatedMachine& machine) {
  machine.visible.emplace();
  for (const auto part : absl::StrSplit(visible, ',')) {
    int number = 0;
    if (!absl::SimpleAtoi(part, &number) || number < 0 || number >= machine.devices) return;
    machine.visible->push_back(number);
  }
}

absl::StatusOr<std::shared_ptr<nccl::NcclApi>> MakeNccl() {
  return std::make_shared<testing::HostNccl>(nccl_version);
}

}  // namespace
}  // namespace ft

int main(int argc, char** argv) {
  ft::cuda::emulation::Machine().devices = 8;
  const char* machine = std::getenv("FT_EMULATED_MACHINE");
  if (machine != nullptr && !ft::Describe(machine, ft::cuda::emulation::Machine())) {
    std::cerr << "FT_EMULATED_MACHINE=" << machine << " is not understood\n";
    return 2;
  }
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"))
    ft::Show(visible, ft::cuda::emulation::Machine());
  return ft::Main(argc, argv, ft::MakeNccl);
}
