#include "test/doubles/cuda/launch.h"

#include <cstdlib>
#include <new>

#include "fmt/format.h"
#include "test/doubles/cuda/block.h"
#include "test/doubles/cuda/race_watch.h"
#include "test/doubles/cuda/symbols.h"

namespace ft::cuda::emulation {
namespace {

thread_local std::string last_message;
thread_local Order thread_order = Order::kAscending;
constinit thread_local void* dynamic_shared = nullptr;

// Limits of every GPU since compute capability 8.0; of shared memory since 9.0.
constexpr unsigned kMaxBlock = 1024, kMaxGridX = 0x7FFFFFFF, kMaxGridYZ = 65535;
constexpr size_t kMaxShared = 227 << 10;
constexpr int kPattern = 0xCD;

// Dynamic shared memory of a block: garbage at its start, guarded at its end. AddressSanitizer guards blocks
// of the heap itself.
class SharedMemory {
 public:
  explicit SharedMemory(size_t bytes) : bytes_(bytes) {
    if (bytes_ == 0) return;
    data_ = static_cast<unsigned char*>(std::malloc(bytes_ + kGuard));
    if (data_ == nullptr) throw std::bad_alloc();
    std::memset(data_, kPattern, bytes_ + kGuard);
    dynamic_shared = data_;
  }
  ~SharedMemory() {
    dynamic_shared = nullptr;
    std::free(data_);
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void Spoil() {
    if (bytes_ > 0) std::memset(data_, kPattern, bytes_);
  }
  bool Intact() const {
    for (size_t i = 0; bytes_ > 0 && i < kGuard; ++i) {
      if (data_[bytes_ + i] != kPattern) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kGuard = FT_FIBER_ASAN ? 0 : 256;
  size_t bytes_;
  unsigned char* data_ = nullptr;
};

std::string CheckShape(const LaunchShape& shape) {
  const uint64_t threads = uint64_t{shape.block_x} * shape.block_y;
  if (threads == 0 || shape.block_x > kMaxBlock || shape.block_y > kMaxBlock || threads > kMaxBlock)
    return fmt::format("blocks of {} x {} threads", shape.block_x, shape.block_y);
  if (shape.grid_x == 0 || shape.grid_y == 0 || shape.grid_z == 0 || shape.grid_x > kMaxGridX ||
      shape.grid_y > kMaxGridYZ || shape.grid_z > kMaxGridYZ)
    return fmt::format("a grid of {} x {} x {}", shape.grid_x, shape.grid_y, shape.grid_z);
  if (shape.shared_bytes > kMaxShared)
    return fmt::format("{} bytes of dynamic shared memory", shape.shared_bytes);
  return "";
}

int RunGrid(const LaunchShape& shape, const void* kernel, const std::function<void()>& body, Order order) {
  SharedMemory shared(shape.shared_bytes);
  gridDim = {shape.grid_x, shape.grid_y, shape.grid_z};
  blockDim = {shape.block_x, shape.block_y, 1};
  RaceWatch::Own().BeginGrid(dynamic_shared, shape.shared_bytes);
  const uint64_t blocks = uint64_t{shape.grid_x} * shape.grid_y * shape.grid_z;
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint64_t block = order == Order::kAscending ? i : blocks - 1 - i;
    blockIdx = {static_cast<unsigned>(block % shape.grid_x),
                static_cast<unsigned>(block / shape.grid_x % shape.grid_y),
                static_cast<unsigned>(block / shape.grid_x / shape.grid_y)};
    shared.Spoil();
    SpoilStaticShared(kPattern);
    RaceWatch::Own().BeginBlock();
    std::string problem;
    const bool done = Block::Own().Run(body, order, problem);
    if (done && shared.Intact()) continue;
    if (done) problem = "wrote behind the end of dynamic shared memory";
    return Fail(kLaunchFailure, fmt::format("{}, block ({}, {}, {}): {}", NameOf(kernel), blockIdx.x,
                                            blockIdx.y, blockIdx.z, problem));
  }
  return kSuccess;
}

}  // namespace

void* DynamicSharedMemory() { return dynamic_shared; }

void SetOrder(Order order) { thread_order = order; }

int Fail(int error, std::string message) {
  last_message = std::move(message);
  return error;
}

std::string LastMessage() { return last_message; }

int Enqueue(const LaunchShape& shape, StreamHandle stream, const void* kernel, std::function<void()> body) {
  if (const std::string wrong = CheckShape(shape); !wrong.empty())
    return Fail(kInvalidConfiguration, fmt::format("{}: cannot be launched with {}", NameOf(kernel), wrong));
  const Order order = thread_order;
  auto run = [shape, kernel, body = std::move(body), order] { return RunGrid(shape, kernel, body, order); };
  return stream == nullptr ? run() : stream->Submit(NameOf(kernel).c_str(), std::move(run));
}

int EnqueueHost(StreamHandle stream, const char* what, std::function<int()> work) {
  return stream == nullptr ? work() : stream->Submit(what, std::move(work));
}

}  // namespace ft::cuda::emulation
