// The emulated driver's streams, events and graphs.
#include <algorithm>
#include <atomic>
#include <chrono>

#include "fmt/format.h"
#include "runtime/base/status_macros.h"
#include "test/doubles/cuda/capture.h"
#include "test/doubles/cuda/emulated_driver.h"

namespace ft::cuda::emulation {
namespace {

// cudaErrorInvalidResourceHandle, cudaErrorStreamCaptureInvalidated.
constexpr int kInvalidHandle = 400, kCaptureInvalidated = 901;

absl::Status StreamFailed(const char* call, const std::string& why) {
  return absl::InternalError(fmt::format("{} failed: {} (emulated)", call, why));
}

int64_t NowNs() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

void Join(std::vector<int>& nodes, const std::vector<int>& others) {
  for (int node : others) {
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  }
}

}  // namespace

int EmulatedStream::Submit(const char* what, std::function<int()> work) {
  return driver.SubmitTo(*this, what, std::move(work));
}

int EmulatedDriver::SubmitTo(EmulatedStream& stream, const char* what, std::function<int()> work,
                             uint64_t bytes) {
  Lock lock(mutex_);
  const absl::StatusOr<EmulatedStream*> found = FindStream(&stream, what);
  if (!found.ok()) return Fail(kInvalidHandle, std::string(found.status().message()));
  if (const absl::Status status = CheckMayEnqueue(stream, what); !status.ok())
    return Fail(kCaptureInvalidated, std::string(status.message()));
  Note(what, &stream, nullptr, bytes);
  if (stream.capture != nullptr) {
    Capture& capture = *stream.capture;
    capture.nodes.push_back({what, std::move(work), stream.last});
    stream.last = {static_cast<int>(capture.nodes.size()) - 1};
    return kSuccess;
  }
  stream.queue.push_back({Work::Kind::kRun, std::move(work), nullptr});
  return machine_.schedule == Schedule::kAtOnce ? RunQueue(stream, lock) : kSuccess;
}

int EmulatedDriver::RunOne(EmulatedStream& stream, Lock& lock) {
  Work work = std::move(stream.queue.front());
  stream.queue.pop_front();
  int error = kSuccess;
  switch (work.kind) {
    case Work::Kind::kRun:
      lock.unlock();
      error = work.run();
      lock.lock();
      break;
    case Work::Kind::kRecord:
      work.mark->done = true;
      work.mark->time_ns = NowNs();
      break;
    case Work::Kind::kWait:
      return RunUpTo(work.mark, lock);
  }
  if (error != kSuccess && lost_.ok()) lost_ = absl::InternalError(LastMessage());
  return error;
}

int EmulatedDriver::RunUpTo(const std::shared_ptr<Mark>& mark, Lock& lock) {
  while (!mark->done && !mark->stream->queue.empty()) {
    if (const int error = RunOne(*mark->stream, lock); error != kSuccess) return error;
  }
  return kSuccess;
}

int EmulatedDriver::RunQueue(EmulatedStream& stream, Lock& lock) {
  while (!stream.queue.empty()) {
    if (const int error = RunOne(stream, lock); error != kSuccess) return error;
  }
  return kSuccess;
}

absl::Status EmulatedDriver::RunAll(EmulatedStream& stream, Lock& lock, const char* call) {
  if (const int error = RunQueue(stream, lock); error != kSuccess)
    return StreamFailed(call, fmt::format("{}, error {}", LastMessage(), error));
  return absl::OkStatus();
}

absl::StatusOr<StreamHandle> EmulatedDriver::CreateStream(bool high_priority) {
  Lock lock(mutex_);
  FT_RETURN_IF_ERROR(CheckThread("CreateStream"));
  streams_.push_back(std::make_unique<EmulatedStream>(*this, static_cast<int>(streams_.size())));
  Note(high_priority ? "CreateStream high" : "CreateStream", streams_.back().get());
  return streams_.back().get();
}

absl::Status EmulatedDriver::DestroyStream(StreamHandle handle) {
  Lock lock(mutex_);
  FT_ASSIGN_OR_RETURN(EmulatedStream* const stream, FindStream(handle, "DestroyStream"));
  if (stream->capture != nullptr) return StreamFailed("DestroyStream", "the stream is being captured");
  Note("DestroyStream", stream);
  const absl::Status status = RunAll(*stream, lock, "DestroyStream");
  stream->destroyed = true;
  return status;
}

absl::Status EmulatedDriver::Synchronize(StreamHandle handle) {
  Lock lock(mutex_);
  FT_ASSIGN_OR_RETURN(EmulatedStream* const stream, FindStream(handle, "Synchronize"));
  if (stream->capture != nullptr) {
    stream->capture->broken = "Synchronize was called";
    return StreamFailed("Synchronize", fmt::format("stream {} is being captured", stream->number));
  }
  Note("Synchronize", stream);
  return RunAll(*stream, lock, "Synchronize");
}

absl::StatusOr<EventHandle> EmulatedDriver::CreateEvent(bool timing) {
  Lock lock(mutex_);
  FT_RETURN_IF_ERROR(CheckThread("CreateEvent"));
  events_.push_back(std::make_unique<CUevent_st>());
  events_.back()->number = static_cast<int>(events_.size()) - 1;
  events_.back()->timing = timing;
  Note(timing ? "CreateEvent timing" : "CreateEvent", nullptr, events_.back().get());
  return events_.back().get();
}

absl::Status EmulatedDriver::DestroyEvent(EventHandle handle) {
  Lock lock(mutex_);
  FT_ASSIGN_OR_RETURN(const EventHandle event, FindEvent(handle, "DestroyEvent"));
  event->destroyed = true;
  Note("DestroyEvent", nullptr, event);
  return absl::OkStatus();
}

absl::Status EmulatedDriver::Record(EventHandle event_handle, StreamHandle stream_handle) {
  Lock lock(mutex_);
  FT_ASSIGN_OR_RETURN(EmulatedStream* const stream, FindStream(stream_handle, "Record"));
  FT_ASSIGN_OR_RETURN(const EventHandle event, FindEvent(event_handle, "Record"));
  FT_RETURN_IF_ERROR(CheckMayEnqueue(*stream, "Record"));
  Note("Record", stream, event);
  event->mark = std::make_shared<Mark>();
  event->mark->stream = stream;
  if (stream->capture != nullptr) {
    event->mark->captured = true;
    event->mark->capture = stream->capture;
    event->mark->nodes = stream->last;
    return absl::OkStatus();
  }
  stream->queue.push_back({Work::Kind::kRecord, nullptr, event->mark});
  return machine_.schedule == Schedule::kAtOnce ? RunAll(*stream, lock, "Record") : absl::OkStatus();
}

absl::Status EmulatedDriver::Wait(EventHandle event_handle, StreamHandle stream_handle) {
  std::this_thread::sleep_for(wait);
  Lock lock(mutex_);
  FT_ASSIGN_OR_RETURN(EmulatedStream* const stream, FindStream(stream_handle, "Wait"));
  FT_ASSIGN_OR_RETURN(const EventHandle event, FindEvent(event_handle, "Wait"));
  const std::shared_ptr<Mark> mark = event->mark;
  if (mark != nullptr && mark->captured) {
    const std::shared_ptr<Capture> capture = mark->capture.lock();
    if (capture == nullptr)
      return StreamFailed("Wait", "the event was last recorded in a capture that has ended");
    if (stream->capture == nullptr) {  // joins
      if (capture->thread != std::this_thread::get_id())
        return StreamFailed("Wait", "the event belongs to the capture of another thread");
      stream->capture = capture;
      stream->last.clear();
      capture->streams.push_back(stream);
    }
    if (stream->capture != capture) return StreamFailed("Wait", "the event belongs to another capture");
    FT_RETURN_IF_ERROR(CheckMayEnqueue(*stream, "Wait"));
    Note("Wait", stream, event);
    Join(stream->last, mark->nodes);
    return absl::OkStatus();
  }
  FT_RETURN_IF_ERROR(CheckMayEnqueue(*stream, "Wait"));
  if (stream->capture != nullptr) {
    stream->capture->broken = fmt::format("stream {} waited for work outside", stream->number);
    return StreamFailed("Wait", fmt::format("event {} was not recorded in this capture", event->number));
  }
  Note("Wait", stream, event);
  if (mark == nullptr) return absl::OkStatus();  // never recorded: counts as happened
  stream->queue.push_back({Work::Kind::kWait, nullptr, mark});
  return machine_.schedule == Schedule::kAtOnce ? RunAll(*stream, lock, "Wait") : absl::OkStatus();
}

absl::Status EmulatedDriver::Query(EventHandle handle, bool& done) {
  Lock lock(mutex_);
  FT_ASSIGN_OR_RETURN(const EventHandle event, FindEvent(handle, "Query"));
  const std::shared_ptr<Mark> mark = event->mark;
  if (mark != nullptr && mark->captured)
    return StreamFailed("Query", "the event was last recorded in a capture");
  done = mark == nullptr || mark->done;
  // Who asks again and again must see it happen one day.
  if (!done && RunUpTo(mark, lock) != kSuccess) return StreamFailed("Query", LastMessage());
  return absl::OkStatus();
}

absl::Status EmulatedDriver::Await(EventHandle handle) {
  Lock lock(mutex_);
  FT_ASSIGN_OR_RETURN(const EventHandle event, FindEvent(handle, "Await"));
  FT_RETURN_IF_ERROR(CheckNotCapturing("Await"));
  const std::shared_ptr<Mark> mark = event->mark;
  if (mark != nullptr && mark->captured)
    return StreamFailed("Await", "the event was last recorded in a capture");
  Note("Await", nullptr, event);
  if (mark == nullptr || mark->done) return absl::OkStatus();
  return RunUpTo(mark, lock) == kSuccess ? absl::OkStatus() : StreamFailed("Await", LastMessage());
}

absl::StatusOr<float> EmulatedDriver::Elapsed(EventHandle begin, EventHandle end) {
  Lock lock(mutex_);
  for (EventHandle handle : {begin, end}) {
    FT_ASSIGN_OR_RETURN(const EventHandle event, FindEvent(handle, "Elapsed"));
    if (!event->timing) return StreamFailed("Elapsed", fmt::format("event {} has no timing", event->number));
    if (event->mark == nullptr || event->mark->captured)
      return StreamFailed("Elapsed",
                          fmt::format("event {} was not recorded, or in a capture", event->number));
    if (!event->mark->done)
      return StreamFailed("Elapsed", fmt::format("event {} has not happened", event->number));
  }
  return static_cast<float>(end->mark->time_ns - begin->mark->time_ns) * 1e-6f;
}

absl::Status EmulatedDriver::Stamp(EventHandle event_handle, StreamHandle stream_handle) {
  Lock lock(mutex_);
  FT_ASSIGN_OR_RETURN(EmulatedStream* const stream, FindStream(stream_handle, "Stamp"));
  FT_ASSIGN_OR_RETURN(const EventHandle event, FindEvent(event_handle, "Stamp"));
  if (!event->timing) return StreamFailed("Stamp", fmt::format("event {} has no timing", event->number));
  auto mark = std::make_shared<Mark>();
  mark->stream = stream;
  lock.unlock();
  const int error = SubmitTo(*stream, "Stamp", [this, mark, event] {
    Lock inside(mutex_);
    if (event->destroyed)
      return Fail(kInvalidHandle, fmt::format("event {} was destroyed before its stamp", event->number));
    mark->done = true;
    mark->time_ns = NowNs();
    return kSuccess;
  });
  FT_RETURN_IF_ERROR(LaunchStatus(error, "Stamp"));
  lock.lock();
  event->mark = mark;
  if (stream->capture != nullptr) stream->capture->nodes.back().stamp = mark;
  return absl::OkStatus();
}

absl::Status EmulatedDriver::Store(std::initializer_list<WordWrite> words, StreamHandle stream_handle) {
  Lock lock(mutex_);
  FT_ASSIGN_OR_RETURN(EmulatedStream* const stream, FindStream(stream_handle, "Store"));
  if (!machine_.stores) return StreamFailed("Store", "the driver has no operations on memory");
  for (const WordWrite& word : words) FT_RETURN_IF_ERROR(CheckRange(word.address, 8, true, "Store"));
  lock.unlock();
  const auto store = [this, words = std::vector<WordWrite>(words)] {
    Lock inside(mutex_);
    for (const WordWrite& word : words) {
      if (const absl::Status status = CheckRange(word.address, 8, true, "Store"); !status.ok())
        return Fail(kInvalidValue, std::string(status.message()));
      std::atomic_ref(*word.address).store(word.value, std::memory_order_release);
    }
    return kSuccess;
  };
  return LaunchStatus(SubmitTo(*stream, "Store", store, 8 * words.size()), "Store");
}

absl::Status EmulatedDriver::BeginCapture(StreamHandle origin) {
  Lock lock(mutex_);
  FT_ASSIGN_OR_RETURN(EmulatedStream* const stream, FindStream(origin, "BeginCapture"));
  if (stream->capture != nullptr || OwnCapture() != nullptr)
    return StreamFailed("BeginCapture", "a capture is in progress");
  stream->capture = std::make_shared<Capture>();
  stream->capture->origin = stream;
  stream->capture->thread = std::this_thread::get_id();
  stream->capture->streams = {stream};
  stream->last.clear();
  captures_.push_back(stream->capture);
  Note("BeginCapture", stream);
  return absl::OkStatus();
}

absl::StatusOr<GraphHandle> EmulatedDriver::EndCapture(StreamHandle origin) {
  Lock lock(mutex_);
  FT_ASSIGN_OR_RETURN(EmulatedStream* const stream, FindStream(origin, "EndCapture"));
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr || capture->origin != stream)
    return StreamFailed("EndCapture", fmt::format("no capture began on stream {}", stream->number));
  if (capture->thread != std::this_thread::get_id())
    return StreamFailed("EndCapture", "the capture was begun by another thread");
  absl::StatusOr<GraphHandle> graph = MakeGraph(*capture);
  for (EmulatedStream* captured : capture->streams) captured->capture = nullptr;
  captures_.erase(std::find(captures_.begin(), captures_.end(), capture));
  Note("EndCapture", stream);
  return graph;
}

absl::StatusOr<GraphHandle> EmulatedDriver::MakeGraph(Capture& capture) {
  if (!capture.broken.empty())
    return StreamFailed("EndCapture", fmt::format("the capture is invalid: {}", capture.broken));
  if (const EmulatedStream* stream = Unjoined(capture))
    return StreamFailed("EndCapture", fmt::format("stream {} has work that stream {} has not waited for",
                                                  stream->number, capture.origin->number));
  graphs_.push_back(std::make_unique<CUgraphExec_st>());
  graphs_.back()->number = static_cast<int>(graphs_.size()) - 1;
  graphs_.back()->nodes = std::make_shared<const std::vector<Node>>(std::move(capture.nodes));
  return graphs_.back().get();
}

absl::Status EmulatedDriver::LaunchGraph(GraphHandle handle, StreamHandle stream) {
  std::shared_ptr<const std::vector<Node>> nodes;
  {
    Lock lock(mutex_);
    FT_ASSIGN_OR_RETURN(const GraphHandle graph, FindGraph(handle, "LaunchGraph"));
    FT_RETURN_IF_ERROR(FindStream(stream, "LaunchGraph").status());
    FT_RETURN_IF_ERROR(CheckNotCapturing("LaunchGraph"));
    nodes = graph->nodes;
    for (const Node& node : *nodes)
      if (node.stamp != nullptr) node.stamp->done = false;
  }
  const int error = stream->Submit("LaunchGraph", [nodes, schedule = machine_.schedule] {
    for (int node : RunOrder(*nodes, schedule)) {
      if (const int failed = (*nodes)[node].run(); failed != kSuccess) return failed;
    }
    return kSuccess;
  });
  return LaunchStatus(error, "LaunchGraph");
}

absl::Status EmulatedDriver::LaunchHost(void (*function)(void*), void* data, StreamHandle stream) {
  {
    Lock lock(mutex_);
    FT_RETURN_IF_ERROR(FindStream(stream, "LaunchHost").status());
  }
  // As a thread of CUDA's: it may not call CUDA.
  const int error = stream->Submit("LaunchHost", [function, data] {
    std::thread(function, data).join();
    return kSuccess;
  });
  return LaunchStatus(error, "LaunchHost");
}

absl::Status EmulatedDriver::DestroyGraph(GraphHandle handle) {
  Lock lock(mutex_);
  FT_ASSIGN_OR_RETURN(const GraphHandle graph, FindGraph(handle, "DestroyGraph"));
  graph->destroyed = true;
  graph->nodes = nullptr;
  Note("DestroyGraph");
  return absl::OkStatus();
}

}  // namespace ft::cuda::emulation
