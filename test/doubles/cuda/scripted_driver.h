// A driver for tests: passes calls on to another, keeps a log of them, and fails where it is told to.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/backends/cuda/driver.h"

namespace ft::cuda {

class ScriptedDriver : public Driver {
 public:
  explicit ScriptedDriver(std::unique_ptr<Driver> inner) : inner_(std::move(inner)) {}

  // What was called, with streams and events counted from 0 in the order of their creation: "Record e0 s1".
  std::vector<std::string> log;
  // By the first word of a call. It is not passed on then.
  std::map<std::string, absl::Status> failures;

  absl::StatusOr<int> CountDevices() override {
    return Call("CountDevices", [&] { return inner_->CountDevices(); });
  }
  absl::StatusOr<DeviceProperties> Properties(int device) override {
    return Call("Properties", [&] { return inner_->Properties(device); });
  }
  absl::Status SetDevice(int device) override {
    return Call("SetDevice", [&] { return inner_->SetDevice(device); });
  }
  absl::StatusOr<FreeMemory> MemoryInfo() override {
    return Call("MemoryInfo", [&] { return inner_->MemoryInfo(); });
  }
  absl::StatusOr<void*> Malloc(uint64_t bytes) override {
    return Call(absl::StrCat("Malloc ", bytes), [&] { return inner_->Malloc(bytes); });
  }
  absl::StatusOr<void*> MallocHost(uint64_t bytes) override {
    return Call(absl::StrCat("MallocHost ", bytes), [&] { return inner_->MallocHost(bytes); });
  }
  absl::Status Free(void* data) override {
    return Call("Free", [&] { return inner_->Free(data); });
  }
  absl::Status FreeHost(void* data) override {
    return Call("FreeHost", [&] { return inner_->FreeHost(data); });
  }
  absl::Status LockHost(void* data, uint64_t bytes) override {
    return Call(absl::StrCat("LockHost ", bytes), [&] { return inner_->LockHost(data, bytes); });
  }
  absl::Status UnlockHost(void* data) override {
    return Call("UnlockHost", [&] { return inner_->UnlockHost(data); });
  }
  absl::Status Zero(void* device_data, uint64_t bytes) override {
    return Call(absl::StrCat("Zero ", bytes), [&] { return inner_->Zero(device_data, bytes); });
  }
  absl::Status Copy(void* dst, const void* src, uint64_t bytes) override {
    return Call(absl::StrCat("Copy ", bytes), [&] { return inner_->Copy(dst, src, bytes); });
  }
  absl::Status CopyAsync(void* dst, const void* src, uint64_t bytes, StreamHandle stream) override {
    return Call(absl::StrCat("CopyAsync ", bytes, " ", Of(stream)),
                [&] { return inner_->CopyAsync(dst, src, bytes, stream); });
  }

  absl::StatusOr<StreamHandle> CreateStream(bool high_priority) override {
    absl::StatusOr<StreamHandle> stream = Call(absl::StrCat("CreateStream ", high_priority ? "high" : "low"),
                                               [&] { return inner_->CreateStream(high_priority); });
    if (stream.ok()) names_[*stream] = absl::StrCat("s", num_streams_++);
    return stream;
  }
  absl::Status DestroyStream(StreamHandle stream) override {
    return Call("DestroyStream " + Of(stream), [&] { return inner_->DestroyStream(stream); });
  }
  absl::Status Synchronize(StreamHandle stream) override {
    return Call("Synchronize " + Of(stream), [&] { return inner_->Synchronize(stream); });
  }
  absl::StatusOr<EventHandle> CreateEvent(bool timing) override {
    absl::StatusOr<EventHandle> event = Call(absl::StrCat("CreateEvent ", timing ? "timing" : "plain"),
                                             [&] { return inner_->CreateEvent(timing); });
    if (event.ok()) names_[*event] = absl::StrCat("e", num_events_++);
    return event;
  }
  absl::Status DestroyEvent(EventHandle event) override {
    return Call("DestroyEvent " + Of(event), [&] { return inner_->DestroyEvent(event); });
  }
  absl::Status Record(EventHandle event, StreamHandle stream) override {
    return Call(absl::StrCat("Record ", Of(event), " ", Of(stream)),
                [&] { return inner_->Record(event, stream); });
  }
  absl::Status Wait(EventHandle event, StreamHandle stream) override {
    return Call(absl::StrCat("Wait ", Of(event), " ", Of(stream)),
                [&] { return inner_->Wait(event, stream); });
  }
  absl::Status Query(EventHandle event, bool& done) override {
    return Call("Query " + Of(event), [&] { return inner_->Query(event, done); });
  }
  absl::StatusOr<float> Elapsed(EventHandle begin, EventHandle end) override {
    return Call(absl::StrCat("Elapsed ", Of(begin), " ", Of(end)),
                [&] { return inner_->Elapsed(begin, end); });
  }

  absl::Status Stamp(EventHandle event, StreamHandle stream) override {
    return Call(absl::StrCat("Stamp ", Of(event), " ", Of(stream)),
                [&] { return inner_->Stamp(event, stream); });
  }
  absl::Status Store(std::initializer_list<WordWrite> words, StreamHandle stream) override {
    return Call(absl::StrCat("Store ", words.size(), " ", Of(stream)),
                [&] { return inner_->Store(words, stream); });
  }
  bool CanStore() override { return inner_->CanStore(); }

  absl::Status BeginCapture(StreamHandle origin) override {
    return Call("BeginCapture " + Of(origin), [&] { return inner_->BeginCapture(origin); });
  }
  absl::StatusOr<GraphHandle> EndCapture(StreamHandle origin) override {
    return Call("EndCapture " + Of(origin), [&] { return inner_->EndCapture(origin); });
  }
  absl::Status LaunchGraph(GraphHandle graph, StreamHandle stream) override {
    return Call("LaunchGraph " + Of(stream), [&] { return inner_->LaunchGraph(graph, stream); });
  }
  absl::Status DestroyGraph(GraphHandle graph) override {
    return Call("DestroyGraph", [&] { return inner_->DestroyGraph(graph); });
  }
  absl::Status LaunchHost(void (*function)(void*), void* data, StreamHandle stream) override {
    return Call("LaunchHost " + Of(stream), [&] { return inner_->LaunchHost(function, data, stream); });
  }
  absl::Status LaunchStatus(int error, const char* what) override {
    return Call(absl::StrCat("LaunchStatus ", what), [&] { return inner_->LaunchStatus(error, what); });
  }

 private:
  template <typename F>
  auto Call(const std::string& call, F pass_on) -> decltype(pass_on()) {
    log.push_back(call);
    const auto failure = failures.find(call.substr(0, call.find(' ')));
    if (failure != failures.end()) return failure->second;
    return pass_on();
  }

  std::string Of(const void* handle) const {
    const auto name = names_.find(handle);
    return name == names_.end() ? "?" : name->second;
  }

  std::unique_ptr<Driver> inner_;
  std::map<const void*, std::string> names_;
  int num_streams_ = 0, num_events_ = 0;
};

}  // namespace ft::cuda
