#include "runtime/metrics/event_record.h"

#include <array>
#include <bit>

namespace ft {
namespace {

// Of protobuf's encoding; little-endian all of it.
enum class Wire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void AppendFixed(uint64_t value, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

void AppendKey(uint32_t field, Wire wire, std::string* out) {
  AppendVarint(field << 3 | static_cast<uint32_t>(wire), out);
}

void AppendInteger(uint32_t field, int64_t value, std::string* out) {
  AppendKey(field, Wire::kVarint, out);
  AppendVarint(static_cast<uint64_t>(value), out);  // a negative one takes ten bytes
}

void AppendDouble(uint32_t field, double value, std::string* out) {
  AppendKey(field, Wire::kFixed64, out);
  AppendFixed(std::bit_cast<uint64_t>(value), 8, out);
}

void AppendFloat(uint32_t field, float value, std::string* out) {
  AppendKey(field, Wire::kFixed32, out);
  AppendFixed(std::bit_cast<uint32_t>(value), 4, out);
}

// A string, or a message inside of another one.
void AppendBytes(uint32_t field, std::string_view bytes, std::string* out) {
  AppendKey(field, Wire::kBytes, out);
  AppendVarint(bytes.size(), out);
  out->append(bytes);
}

// Field numbers, by message, and what enumerations are used of.
constexpr uint32_t kEventWallTime = 1, kEventStep = 2, kEventFileVersion = 3, kEventSummary = 5,
                   kEventSessionLog = 7;
constexpr uint32_t kSessionLogStatus = 1;
constexpr int64_t kSessionStart = 1;
constexpr uint32_t kSummaryValue = 1;
constexpr uint32_t kValueTag = 1, kValueSimpleValue = 2, kValueTensor = 8, kValueMetadata = 9;
constexpr uint32_t kMetadataPluginData = 1, kMetadataDataClass = 4, kPluginDataName = 1;
constexpr int64_t kDataClassTensor = 2;
constexpr uint32_t kTensorDtype = 1, kTensorShape = 2, kTensorStringVal = 8;
constexpr int64_t kDtypeString = 7;

constexpr std::array<uint32_t, 256> Crc32cTable() {
  std::array<uint32_t, 256> table = {};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t rest = i;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ (rest & 1 ? 0x82f63b78u : 0);
    table[i] = rest;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kCrc32cTable = Crc32cTable();

}  // namespace

uint32_t MaskedCrc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (unsigned char byte : bytes) crc = crc >> 8 ^ kCrc32cTable[(crc ^ byte) & 0xff];
  return std::rotr(~crc, 15) + 0xa282ead8u;
}

EventRecord::EventRecord(size_t reserve) {
  for (std::string* buffer : {&value_, &summary_, &event_, &record_}) buffer->reserve(reserve);
}

std::string_view EventRecord::FileVersion(double wall_time) {
  BeginEvent(wall_time, 0);
  AppendBytes(kEventFileVersion, "brain.Event:2", &event_);
  return Frame();
}

std::string_view EventRecord::SessionStart(double wall_time, int64_t step) {
  value_.clear();
  AppendInteger(kSessionLogStatus, kSessionStart, &value_);
  BeginEvent(wall_time, step);
  AppendBytes(kEventSessionLog, value_, &event_);
  return Frame();
}

std::string_view EventRecord::Text(double wall_time, int64_t step, std::string_view tag,
                                   std::string_view markdown) {
  std::string plugin, metadata, tensor;
  AppendBytes(kPluginDataName, "text", &plugin);
  AppendBytes(kMetadataPluginData, plugin, &metadata);
  AppendInteger(kMetadataDataClass, kDataClassTensor, &metadata);
  AppendInteger(kTensorDtype, kDtypeString, &tensor);
  AppendBytes(kTensorShape, "", &tensor);  // no dimensions: a single string
  AppendBytes(kTensorStringVal, markdown, &tensor);
  value_.clear();
  AppendBytes(kValueTag, tag, &value_);
  AppendBytes(kValueTensor, tensor, &value_);
  AppendBytes(kValueMetadata, metadata, &value_);
  AddValue();
  return Summary(wall_time, step);
}

void EventRecord::AddScalar(std::string_view tag, double value) {
  value_.clear();
  AppendBytes(kValueTag, tag, &value_);
  AppendFloat(kValueSimpleValue, static_cast<float>(value), &value_);
  AddValue();
}

std::string_view EventRecord::Scalars(double wall_time, int64_t step) { return Summary(wall_time, step); }

void EventRecord::AddValue() { AppendBytes(kSummaryValue, value_, &summary_); }

std::string_view EventRecord::Summary(double wall_time, int64_t step) {
  BeginEvent(wall_time, step);
  AppendBytes(kEventSummary, summary_, &event_);
  summary_.clear();
  return Frame();
}

void EventRecord::BeginEvent(double wall_time, int64_t step) {
  event_.clear();
  AppendDouble(kEventWallTime, wall_time, &event_);
  AppendInteger(kEventStep, step, &event_);
}

// Length, its checksum, the message, its checksum.
std::string_view EventRecord::Frame() {
  record_.clear();
  AppendFixed(event_.size(), 8, &record_);
  AppendFixed(MaskedCrc32c(record_), 4, &record_);
  record_ += event_;
  AppendFixed(MaskedCrc32c(event_), 4, &record_);
  return record_;
}

}  // namespace ft
