// plan.bin on disk.
//
//   bytes  0 ..  9  "FTPLAN\r\n\x1a\n": shows at once when a transfer took it for text
//   bytes 10 .. 11  zero
//   bytes 12 .. 15  u32 version of the format
//   bytes 16 .. 23  u64 length of the payload
//   bytes 24 .. 31  u64 PlanHash of the payload
//   bytes 32 ..     the payload: a serialised proto::Plan
//
// All numbers are little-endian. Nothing follows the payload.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

inline constexpr uint32_t kPlanVersion = 8;
inline constexpr size_t kPlanHeaderBytes = 32;
// Larger files are refused unread. The plan of a 70B model has a few megabytes.
inline constexpr uint64_t kMaxPlanBytes = uint64_t{1} << 29;

struct PlanFile {
  proto::Plan plan;
  // Of the payload: ranks compare it to know that they run the same plan.
  uint64_t hash = 0;
};

// FNV-1a over the bytes, 64 bits, followed by MurmurHash3's finaliser so that near inputs get far results.
// Every damage confined to one byte is found with certainty, any other with probability 1 - 2^-64. No
// protection from a forger.
uint64_t PlanHash(std::string_view payload);

// Whether bytes are a plan, maybe a damaged one, rather than anything else.
bool BeginsLikePlan(std::string_view bytes);

// Header and payload. Sets plan.version to kPlanVersion; equal plans give equal bytes. Errors:
// InvalidArgument for a plan larger than kMaxPlanBytes.
absl::StatusOr<std::string> SerializePlan(proto::Plan plan);

// Write-then-rename. Errors: those of SerializePlan, or of the system (exit status 74).
absl::Status WritePlan(const proto::Plan& plan, const std::string& path);

// What SerializePlan made. `name` is used in error messages. Errors: InvalidArgument for something that is
// not a plan or of another version, DataLoss for a plan cut short, longer than it says, or damaged.
absl::StatusOr<PlanFile> ParsePlan(std::string_view bytes, std::string_view name);

// Reads `path`. Errors: those of ParsePlan; NotFound, PermissionDenied or Internal from the system. The plan
// is not verified: VerifyPlan does that.
absl::StatusOr<PlanFile> ReadPlan(const std::string& path);

// 16 hexadecimal digits.
std::string PlanHashText(uint64_t hash);

}  // namespace ft
