#include "test/fuzz/fuzzer.h"

#include <sanitizer/common_interface_defs.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "fmt/format.h"
#include "runtime/base/cluster.h"
#include "test/fuzz/command_line.h"
#include "test/fuzz/mutate.h"
#include "test/fuzz/seeds.h"

namespace ft::fuzz {
namespace {

constexpr int64_t kMostRunBytes = 4 << 20;  // of an operand of a kernel that is run
constexpr int64_t kMostRunWork = 64 << 20;  // of the extents of its operands, multiplied
constexpr unsigned kMostSeconds = 60;       // of a try

char current[256];  // what is being tried, for what ends the program

void SayCurrent() {
  const ssize_t ignored = write(STDERR_FILENO, current, std::strlen(current));
  static_cast<void>(ignored);
}

void OnAlarm(int) {
  constexpr char kHangs[] = "kernel fuzzing: a try takes more than a minute\n";
  const ssize_t ignored = write(STDERR_FILENO, kHangs, sizeof(kHangs) - 1);
  static_cast<void>(ignored);
  SayCurrent();
  _exit(1);
}

int64_t BytesOf(const Operand& operand) {
  int64_t bytes = static_cast<int64_t>(SizeOf(operand.dtype));
  for (const int64_t extent : operand.dims) bytes *= extent;
  return bytes;
}

// Blocks of the heap that end where the operands end.
class Memory {
 public:
  // Without bytes of its own where that is more than is run.
  Tensor Place(const Operand& operand, Random& random) {
    Tensor tensor;
    if (!operand.present) return tensor;
    tensor.dtype = operand.dtype;
    tensor.rank = static_cast<int>(operand.dims.size());
    std::copy(operand.dims.begin(), operand.dims.end(), tensor.dims.begin());
    tensor.flat_begin = operand.flat_begin;
    tensor.parameters = operand.parameters;
    const int64_t bytes = BytesOf(operand),
                  shift = operand.shift * static_cast<int64_t>(SizeOf(operand.dtype));
    is_real_ = is_real_ && bytes <= kMostRunBytes;
    const size_t length = static_cast<size_t>(shift + std::min(bytes, kMostRunBytes));
    void* block = nullptr;
    if (posix_memalign(&block, 256, length) != 0) std::abort();
    blocks_.emplace_back(block, &std::free);
    tensor.data = static_cast<char*>(block) + shift;
    if (bytes <= kMostRunBytes) Draw(operand, random, tensor);
    return tensor;
  }

  bool is_real() const { return is_real_; }

 private:
  static void Draw(const Operand& operand, Random& random, const Tensor& tensor) {
    const int64_t bytes = BytesOf(operand);
    if (operand.below > 0 && (operand.dtype == DType::kI32 || operand.dtype == DType::kI64)) {
      for (int64_t i = 0; i < tensor.elements(); ++i) {
        const int64_t value = static_cast<int64_t>(random.Below(static_cast<uint64_t>(operand.below)));
        if (operand.dtype == DType::kI32) tensor.as<int32_t>()[i] = static_cast<int32_t>(value);
        if (operand.dtype == DType::kI64) tensor.as<int64_t>()[i] = value;
      }
      return;
    }
    for (int64_t i = 0; i < bytes; i += 8) {
      const uint64_t word = random.Next();
      std::memcpy(tensor.as<char>() + i, &word, static_cast<size_t>(std::min<int64_t>(8, bytes - i)));
    }
  }

  std::vector<std::unique_ptr<void, decltype(&std::free)>> blocks_;
  bool is_real_ = true;
};

KernelOperands PlaceAll(const Seed& seed, Random& random, Memory& memory) {
  KernelOperands operands;
  for (const Operand& operand : seed.in) operands.in.push_back(memory.Place(operand, random));
  for (const Operand& operand : seed.out) {
    operands.out.push_back(operand.shares >= 0 ? operands.in[operand.shares] : memory.Place(operand, random));
    operands.out.back().flat_begin = operand.present ? operand.flat_begin : 0;
  }
  operands.workspace = memory.Place(seed.workspace, random);
  return operands;
}

// Small tensors can stand for a product that takes minutes.
bool IsQuick(const Seed& seed) {
  double work = 1;
  for (const auto* list : {&seed.in, &seed.out}) {
    for (const Operand& operand : *list)
      if (operand.present) work = std::max(work, static_cast<double>(BytesOf(operand)));
  }
  double product = work;
  for (const Operand& operand : seed.in) {
    if (operand.present && !operand.dims.empty())
      product = std::max(
          product, work * static_cast<double>(*std::max_element(operand.dims.begin(), operand.dims.end())));
  }
  if (seed.cluster != nullptr) {
    const ClusterBody& body = seed.cluster->body;
    product = std::max(product, static_cast<double>(body.rows) * static_cast<double>(body.columns) *
                                    static_cast<double>(body.values()));
  }
  return product <= static_cast<double>(kMostRunWork);
}

struct Counts {
  int64_t tries = 0, accepted = 0, run = 0;
};

class Fuzzer {
 public:
  Fuzzer(conformance::Bench& bench, uint64_t seed)
      : bench_(bench), seed_(seed), seeds_(Seeds(bench.device_class())) {}

  // Every kernel has a seed, and takes all that it has.
  absl::Status CheckSeeds(const std::vector<std::string>& kernels) {
    for (const std::string& kernel : kernels) {
      if (std::none_of(seeds_.begin(), seeds_.end(), [&](const Seed& seed) { return seed.op == kernel; }))
        return absl::NotFoundError(fmt::format("kernel '{}' has no seed", kernel));
    }
    for (const Seed& seed : seeds_) {
      Random random(seed_);
      if (absl::Status status = Run(seed, random); !status.ok())
        return absl::InternalError(
            fmt::format("{} {}: {}", seed.op, seed.label, std::string(status.message())));
    }
    return absl::OkStatus();
  }

  // Whatever the other tries were.
  void Try(int64_t number) {
    Random random(seed_ * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(number));
    Seed seed = seeds_[random.Below(seeds_.size())];
    const auto end =
        fmt::format_to_n(current, sizeof(current) - 2, "kernel fuzzing: in try {} on {}: {} {}\n", number,
                         std::string(Name(bench_.device_class())), seed.op, seed.label);
    *end.out = '\0';
    Mutate(random, seed);
    ++counts_.tries;
    alarm(kMostSeconds);
    Run(seed, random).IgnoreError();
    alarm(0);
  }

  const Counts& counts() const { return counts_; }

 private:
  absl::Status Run(const Seed& seed, Random& random) {
    Memory memory;
    const KernelOperands operands = PlaceAll(seed, random, memory);
    KernelAttributes attributes;
    for (const auto& [name, value] : seed.attributes) attributes.Add(name, value);
    attributes.SetCluster(seed.cluster);
    absl::StatusOr<std::unique_ptr<Kernel>> kernel = bench_.Create(seed.op, operands, attributes);
    if (!kernel.ok()) return kernel.status();
    ++counts_.accepted;
    if (!memory.is_real() || !IsQuick(seed)) return absl::OkStatus();
    ++counts_.run;
    return bench_.Run(**kernel);
  }

  conformance::Bench& bench_;
  const uint64_t seed_;
  const std::vector<Seed> seeds_;
  Counts counts_;
};

}  // namespace

int Main(int argc, char** argv, conformance::Bench& bench, const std::vector<std::string>& kernels) {
  Wanted wanted;
  if (const std::optional<int> status = ParseCommandLine(argc, argv, wanted)) return *status;

  __sanitizer_set_death_callback(&SayCurrent);
  signal(SIGALRM, &OnAlarm);
  Fuzzer fuzzer(bench, wanted.seed);
  std::snprintf(current, sizeof(current), "kernel fuzzing: in a seed as it is\n");
  if (const absl::Status status = fuzzer.CheckSeeds(kernels); !status.ok()) {
    std::fprintf(stderr, "kernel fuzzing: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < wanted.tries; ++i) {
    if (std::chrono::steady_clock::now() - begin > std::chrono::duration<double>(wanted.seconds)) break;
    fuzzer.Try(wanted.first + i);
  }
  const Counts& counts = fuzzer.counts();
  fmt::print("kernel fuzzing on {}: {} tries of {} kernels, {} accepted, {} of these run, seed {}\n",
             std::string(Name(bench.device_class())), counts.tries, kernels.size(), counts.accepted,
             counts.run, wanted.seed);
  return counts.run > 0 ? 0 : 1;
}

}  // namespace ft::fuzz
