// Reads event files back for tests, sharing nothing with what writes them: frames, a CRC-32C bit by bit, and
// protobuf's wire format.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ft {

// Polynomial division by 0x1EDC6F41, a bit at a time.
inline uint32_t BitwiseCrc32c(std::string_view bytes) {
  uint32_t crc = 0xffffffff;
  for (char byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const bool carry = ((crc ^ (static_cast<unsigned char>(byte) >> bit)) & 1) != 0;
      crc >>= 1;
      if (carry) crc ^= 0x82f63b78;  // the polynomial, its bits in reverse
    }
  }
  return crc ^ 0xffffffff;
}

// A message: field number -> values in order; strings and messages as bytes, numbers as their bits.
struct WireMessage {
  std::multimap<uint32_t, uint64_t> numbers;
  std::multimap<uint32_t, std::string> bytes;
  bool good = true;

  static WireMessage Parse(std::string_view text) {
    WireMessage message;
    const auto varint = [&] {
      uint64_t value = 0;
      for (int shift = 0; shift < 70 && !text.empty(); shift += 7) {
        const auto byte = static_cast<unsigned char>(text.front());
        text.remove_prefix(1);
        value |= static_cast<uint64_t>(byte & 0x7f) << (shift & 63);
        if (byte < 0x80) return value;
      }
      message.good = false;
      return value;
    };
    const auto fixed = [&](size_t size) {
      uint64_t value = 0;
      if (text.size() < size) {
        message.good = false;
        text = {};
        return value;
      }
      for (size_t i = 0; i < size; ++i) value |= uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
      text.remove_prefix(size);
      return value;
    };
    while (!text.empty() && message.good) {
      const uint64_t key = varint();
      const auto field = static_cast<uint32_t>(key >> 3);
      if ((key & 7) == 0) {
        message.numbers.emplace(field, varint());
      } else if ((key & 7) == 1) {
        message.numbers.emplace(field, fixed(8));
      } else if ((key & 7) == 5) {
        message.numbers.emplace(field, fixed(4));
      } else if ((key & 7) == 2) {
        const uint64_t size = varint();
        if (size > text.size()) message.good = false;
        message.bytes.emplace(field, text.substr(0, size));
        text.remove_prefix(std::min<size_t>(size, text.size()));
      } else {
        message.good = false;
      }
    }
    return message;
  }

  std::string Bytes(uint32_t field) const {
    const auto found = bytes.find(field);
    return found == bytes.end() ? std::string("(none)") : found->second;
  }
  uint64_t Number(uint32_t field) const {
    const auto found = numbers.find(field);
    return found == numbers.end() ? ~uint64_t{0} : found->second;
  }
};

struct ReadScalar {
  int64_t step;
  std::string tag;
  float value;
};

struct ReadEvent {
  double wall_time = 0;
  int64_t step = 0;
  WireMessage message;
  std::vector<ReadScalar> scalars;
  std::vector<std::pair<std::string, WireMessage>> tensors;  // tag, value
};

// All events of a file; a frame that is torn or whose checksums are wrong is a failure.
inline std::vector<ReadEvent> ReadEvents(std::string_view file) {
  std::vector<ReadEvent> events;
  const auto number = [](std::string_view bytes) {
    uint64_t value = 0;
    for (size_t i = bytes.size(); i > 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i - 1]);
    return value;
  };
  const auto check = [&](std::string_view bytes, std::string_view masked) {
    const uint32_t rotated = static_cast<uint32_t>(number(masked)) - 0xa282ead8u;
    EXPECT_EQ((rotated >> 17) | (rotated << 15), BitwiseCrc32c(bytes)) << "record " << events.size();
  };
  while (!file.empty()) {
    if (file.size() < 16 || number(file.substr(0, 8)) > file.size() - 16) {
      ADD_FAILURE() << "torn after " << events.size() << " records";
      return events;
    }
    const size_t size = number(file.substr(0, 8));
    check(file.substr(0, 8), file.substr(8, 4));
    check(file.substr(12, size), file.substr(12 + size, 4));
    ReadEvent event;
    event.message = WireMessage::Parse(file.substr(12, size));
    EXPECT_TRUE(event.message.good);
    const uint64_t time = event.message.Number(1);
    std::memcpy(&event.wall_time, &time, sizeof(time));
    event.step = static_cast<int64_t>(event.message.Number(2));
    const WireMessage summary =
        WireMessage::Parse(event.message.bytes.count(5) ? event.message.Bytes(5) : "");
    const auto [begin, end] = summary.bytes.equal_range(1);
    for (auto it = begin; it != end; ++it) {
      const WireMessage value = WireMessage::Parse(it->second);
      EXPECT_TRUE(summary.good && value.good);
      if (value.bytes.count(8) > 0) {
        event.tensors.emplace_back(value.Bytes(1), value);
        continue;
      }
      const auto bits = static_cast<uint32_t>(value.Number(2));
      float number = 0;
      std::memcpy(&number, &bits, sizeof(bits));
      event.scalars.push_back({event.step, value.Bytes(1), number});
    }
    events.push_back(std::move(event));
    file.remove_prefix(size + 16);
  }
  return events;
}

}  // namespace ft
