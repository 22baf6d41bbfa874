// The bytes of PyTorch's TCPStore (c10d), version 2.2 and later.
//
// TCP, integers in host byte order (little-endian here). A string is a u64 length and its bytes; a key list
// is a u64 count and that many strings. A request is a u8 type and its fields; replies carry no type. Errors
// are told by closing. The client's library puts '/' in front of every key.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace ft {

static_assert(std::endian::native == std::endian::little, "the protocol is written for little-endian hosts");

enum class StoreRequest : uint8_t {
  kValidate = 0,     // u32 magic; no reply
  kSet = 1,          // key, value; no reply
  kCompareSet = 2,   // key, expected, desired -> value now
  kGet = 3,          // key -> value, empty when missing
  kAdd = 4,          // key, i64 -> i64
  kCheck = 5,        // keys -> u8, 0: all present
  kWait = 6,         // keys -> u8 0 once all are present
  kGetNumKeys = 7,   // -> i64
  kDeleteKey = 8,    // key -> i64, 0 or 1
  kAppend = 9,       // key, value; no reply
  kMultiGet = 10,    // keys -> that many values
  kMultiSet = 11,    // i64 count, (key, value)...; no reply
  kCancelWait = 12,  // -> u8 1
  kPing = 13,        // u32 -> the same u32
};

inline constexpr uint32_t kStoreMagic = 0x3C85F7CE;
inline constexpr uint8_t kStorePresent = 0;
inline constexpr uint8_t kStoreNotPresent = 1;
inline constexpr uint8_t kStoreStopWaiting = 0;
inline constexpr uint8_t kStoreWaitCancelled = 1;

// Limits of PyTorch's server; ours has the same.
inline constexpr uint64_t kStoreMaxKeyBytes = 8192;
inline constexpr uint64_t kStoreMaxValueBytes = 8u << 20;
inline constexpr uint64_t kStoreMaxKeys = 131072;

// Builds a message in one buffer, so that it leaves in one write.
class StoreMessage {
 public:
  StoreMessage() = default;
  explicit StoreMessage(StoreRequest type) { U8(static_cast<uint8_t>(type)); }

  StoreMessage& U8(uint8_t value) { return Raw(&value, sizeof(value)); }
  StoreMessage& U32(uint32_t value) { return Raw(&value, sizeof(value)); }
  StoreMessage& U64(uint64_t value) { return Raw(&value, sizeof(value)); }
  StoreMessage& I64(int64_t value) { return Raw(&value, sizeof(value)); }
  StoreMessage& String(absl::string_view text) { return U64(text.size()).Raw(text.data(), text.size()); }

  const std::string& bytes() const { return bytes_; }

 private:
  StoreMessage& Raw(const void* data, size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
    return *this;
  }
  std::string bytes_;
};

}  // namespace ft
