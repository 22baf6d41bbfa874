// What streams, events and graphs of the emulated driver are made of.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/backends/cuda/driver.h"
#include "test/doubles/cuda/launch.h"

namespace ft::cuda::emulation {

class EmulatedDriver;
class EmulatedStream;
struct Capture;

// What an event stands for since it was last recorded.
struct Mark {
  EmulatedStream* stream = nullptr;
  bool done = false;
  int64_t time_ns = 0;  // when done
  // Of a record that was captured: the capture, and the nodes that came before.
  std::weak_ptr<Capture> capture;
  bool captured = false;
  std::vector<int> nodes;
};

struct Work {
  enum class Kind { kRun, kRecord, kWait } kind;
  std::function<int()> run;
  std::shared_ptr<Mark> mark;
};

struct Node {
  std::string what;
  std::function<int()> run;
  std::vector<int> after;            // nodes
  std::shared_ptr<Mark> stamp = {};  // what it stamps, in each launch anew
};

// Between BeginCapture and EndCapture.
struct Capture {
  EmulatedStream* origin = nullptr;
  std::thread::id thread;
  std::vector<EmulatedStream*> streams;  // origin and those that joined
  std::vector<Node> nodes;
  std::string broken;  // why it cannot become a graph any more
};

class EmulatedStream final : public CUstream_st {
 public:
  EmulatedStream(EmulatedDriver& driver, int number) : driver(driver), number(number) {}
  int Submit(const char* what, std::function<int()> work) override;

  EmulatedDriver& driver;
  const int number;  // in the order of creation
  bool destroyed = false;
  std::deque<Work> queue;
  std::shared_ptr<Capture> capture;  // null when not being captured
  std::vector<int> last;             // nodes that the next one comes after
};

}  // namespace ft::cuda::emulation

// An event of the emulated driver.
struct CUevent_st {
  int number = 0;
  bool timing = false, destroyed = false;
  std::shared_ptr<ft::cuda::emulation::Mark> mark;  // null: never recorded
};

// An instantiated graph of the emulated driver.
struct CUgraphExec_st {
  int number = 0;
  bool destroyed = false;
  std::shared_ptr<const std::vector<ft::cuda::emulation::Node>> nodes;
};
