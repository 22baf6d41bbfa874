#include "runtime/metrics/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <utility>

#include "runtime/base/atomic_file.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/monotonic_clock.h"
#include "runtime/base/status_macros.h"

namespace ft {
namespace {

using Text = fmt::memory_buffer;

template <typename... Args>
void Add(Text* text, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(*text), format, std::forward<Args>(args)...);
}

void AddQuoted(Text* text, std::string_view value) {
  text->push_back('"');
  for (char c : value) {
    if (c == '"' || c == '\\') {
      text->push_back('\\');
      text->push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      Add(text, "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      text->push_back(c);
    }
  }
  text->push_back('"');
}

// Nanoseconds as the microseconds that the format asks for, without loss.
void AddMicroseconds(Text* text, int64_t ns) { Add(text, "{}.{:03}", ns / 1000, ns % 1000); }

// A metadata event; `value` is JSON.
void AddMetadata(Text* text, int rank, size_t stream, std::string_view what, std::string_view key,
                 std::string_view value) {
  Add(text, R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{"{}":{}}}}})", rank, stream, what, key,
      value);
}

// ,"args":{"bytes":4096,"sequence":17,"layer":"transformer.h.0","shapes":"f32[4] -> f32[4]"}
void AddArguments(int64_t bytes, int64_t sequence, const TraceDetails& details, Text* text) {
  std::string_view before = ",\"args\":{";
  const auto key = [&](std::string_view name) {
    Add(text, "{}\"{}\":", before, name);
    before = ",";
  };
  if (bytes >= 0) key("bytes"), Add(text, "{}", bytes);
  if (sequence >= 0) key("sequence"), Add(text, "{}", sequence);
  if (!details.program.empty()) key("program"), AddQuoted(text, details.program);
  if (details.step >= 0) key("step"), Add(text, "{}", details.step);
  if (details.micro_step >= 0) key("micro_step"), Add(text, "{}", details.micro_step);
  if (!details.layer.empty()) key("layer"), AddQuoted(text, details.layer);
  if (!details.shapes.empty()) key("shapes"), AddQuoted(text, details.shapes);
  Add(text, "{}}}", before == "," ? "" : before);
}

std::string_view AsText(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

absl::Status Flush(Text* text, AtomicFile* file) {
  FT_RETURN_IF_ERROR(file->Append(text->data(), text->size()));
  text->clear();
  return absl::OkStatus();
}

}  // namespace

TraceRecorder::TraceRecorder(int rank) : rank_(rank) {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  wall_offset_ns_ = std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count() - NowNs();
}

int TraceRecorder::AddStream(std::string name, size_t capacity) {
  Stream stream;
  stream.name = std::move(name);
  stream.events = std::make_unique<Event[]>(capacity);
  stream.capacity = capacity;
  streams_.push_back(std::move(stream));
  return static_cast<int>(streams_.size()) - 1;
}

int64_t TraceRecorder::NowNs() { return MonotonicNs(); }

void TraceRecorder::Record(int stream, std::string_view name, std::string_view category, int64_t start_ns,
                           int64_t end_ns, int64_t bytes, int64_t sequence,
                           const TraceDetails& details) noexcept {
  Stream& to = streams_[stream];
  if (to.size == to.capacity) {
    ++to.dropped;
    return;
  }
  to.events[to.size++] = {name, category, start_ns, end_ns, bytes, sequence, details};
}

void TraceRecorder::Count(std::string_view name, int64_t at_ns, double value) noexcept {
  if (!std::isfinite(value)) return;
  if (values_.size() == values_.capacity()) {
    ++dropped_values_;
    return;
  }
  values_.push_back({name, at_ns, value});
}

void TraceRecorder::CountParts(std::string name,
                               absl::Span<const std::pair<std::string_view, uint64_t>> parts) {
  Text text;
  for (const auto& [part, value] : parts) {
    if (text.size() > 0) text.push_back(',');
    AddQuoted(&text, part);
    Add(&text, ":{}", value);
  }
  parts_.push_back({std::move(name), fmt::to_string(text), NowNs()});
}

size_t TraceRecorder::num_events() const {
  size_t events = 0;
  for (const Stream& stream : streams_) events += stream.size;
  return events;
}

size_t TraceRecorder::dropped() const {
  size_t dropped = dropped_values_;
  for (const Stream& stream : streams_) dropped += stream.dropped;
  return dropped;
}

absl::Status TraceRecorder::Write(const std::string& path) const {
  FT_ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> file, AtomicFile::Create(path));
  Text text;
  Add(&text, "{}", kTraceHead);
  AddMetadata(&text, rank_, 0, "process_name", "name", fmt::format("\"rank {}\"", rank_));
  Add(&text, ",\n");
  AddMetadata(&text, rank_, 0, "process_sort_index", "sort_index", std::to_string(rank_));
  if (!label_.empty()) {
    Text label;
    AddQuoted(&label, label_);
    Add(&text, ",\n");
    AddMetadata(&text, rank_, 0, "process_labels", "labels", {label.data(), label.size()});
  }
  if (!run_.plan.empty()) AddRun(&text);
  AddCounters(&text);
  for (size_t tid = 0; tid < streams_.size(); ++tid) FT_RETURN_IF_ERROR(WriteStream(tid, file.get(), &text));
  Add(&text, "{}", kTraceFoot);
  FT_RETURN_IF_ERROR(Flush(&text, file.get()));
  return file->Commit();
}

void TraceRecorder::AddRun(fmt::memory_buffer* text) const {
  Add(text, ",\n{{\"ph\":\"M\",\"pid\":{},\"tid\":0,\"name\":\"{}\",\"args\":{{\"plan\":", rank_,
      kTraceRunEvent);
  AddQuoted(text, run_.plan);
  Add(text, ",\"device\":");
  AddQuoted(text, run_.device);
  Add(text, ",\"replica\":{},\"shard\":{}", run_.replica, run_.shard);
  if (run_.step_ms > 0) Add(text, ",\"step_ms\":{:.17g}", run_.step_ms);
  for (const auto& [key, value] : {std::pair("target", &run_.target), std::pair("link", &run_.link)}) {
    if (value->empty()) continue;
    Add(text, ",\"{}\":", key);
    AddQuoted(text, *value);
  }
  Add(text, "}}}}");
}

void TraceRecorder::AddCounters(fmt::memory_buffer* text) const {
  const auto add = [&](std::string_view name, int64_t at_ns, std::string_view arguments) {
    Add(text, ",\n{{\"ph\":\"C\",\"pid\":{},\"tid\":0,\"name\":", rank_);
    AddQuoted(text, name);
    Add(text, ",\"ts\":");
    AddMicroseconds(text, at_ns + wall_offset_ns_);
    Add(text, ",\"args\":{{{}}}}}", arguments);
  };
  for (const Parts& parts : parts_) add(parts.name, parts.at_ns, parts.arguments);
  for (const Value& value : values_)
    add(value.name, value.at_ns, fmt::format("\"value\":{:.17g}", value.value));
}

absl::Status TraceRecorder::WriteStream(size_t tid, AtomicFile* file, fmt::memory_buffer* text) const {
  const Stream& stream = streams_[tid];
  Text name;
  AddQuoted(&name, stream.name);
  Add(text, ",\n");
  AddMetadata(text, rank_, tid, "thread_name", "name", {name.data(), name.size()});
  Add(text, ",\n");
  AddMetadata(text, rank_, tid, "thread_sort_index", "sort_index", std::to_string(tid));
  if (stream.dropped > 0) {
    Add(text, ",\n");
    AddMetadata(text, rank_, tid, "dropped_events", "count", std::to_string(stream.dropped));
  }
  for (size_t i = 0; i < stream.size; ++i) {
    const Event& event = stream.events[i];
    Add(text, ",\n{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"name\":", rank_, tid);
    AddQuoted(text, event.name);
    Add(text, ",\"cat\":");
    AddQuoted(text, event.category);
    Add(text, ",\"ts\":");
    AddMicroseconds(text, event.start_ns + wall_offset_ns_);
    Add(text, ",\"dur\":");
    AddMicroseconds(text, std::max<int64_t>(0, event.end_ns - event.start_ns));
    AddArguments(event.bytes, event.sequence, event.details, text);
    Add(text, "}}");
    FT_RETURN_IF_ERROR(Flush(text, file));
  }
  return absl::OkStatus();
}

std::string TracePartPath(std::string_view path, int rank) {
  const size_t slash = path.rfind('/');
  const size_t name = slash == std::string_view::npos ? 0 : slash + 1;
  size_t dot = path.rfind('.');
  if (dot == std::string_view::npos || dot <= name) dot = path.size();  // none, or a hidden file's first
  return fmt::format("{}.rank{}{}", path.substr(0, dot), rank, path.substr(dot));
}

absl::Status MergeTraces(absl::Span<const std::string> parts, const std::string& out) {
  FT_ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> merged, AtomicFile::Create(out));
  FT_RETURN_IF_ERROR(merged->Append(kTraceHead));
  bool first = true;
  for (const std::string& part : parts) {
    FT_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(part, MappedFile::Access::kSequential));
    std::string_view events = AsText(file);
    if (!events.starts_with(kTraceHead) || !events.ends_with(kTraceFoot) ||
        events.size() <= kTraceHead.size() + kTraceFoot.size()) {
      return absl::InvalidArgumentError(fmt::format("'{}' is not a trace of ftexec", part));
    }
    events.remove_prefix(kTraceHead.size());
    events.remove_suffix(kTraceFoot.size());
    if (!first) FT_RETURN_IF_ERROR(merged->Append(",\n"));
    FT_RETURN_IF_ERROR(merged->Append(events));
    first = false;
  }
  FT_RETURN_IF_ERROR(merged->Append(kTraceFoot));
  return merged->Commit();
}

}  // namespace ft
