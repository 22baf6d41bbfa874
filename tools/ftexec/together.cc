#include "tools/ftexec/together.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fmt/format.h"
#include "runtime/collective/liveness/agreement.h"

namespace ft {
namespace {

// Empty for OK, else the code, one byte, and the message.
std::string Payload(const absl::Status& status) {
  return status.ok() ? "" : static_cast<char>(status.code()) + std::string(status.message());
}

absl::Status StatusOf(const std::string& payload, const std::string& prefix) {
  return absl::Status(static_cast<absl::StatusCode>(payload[0]), prefix + payload.substr(1));
}

absl::StatusOr<std::string> Decide(const std::vector<std::string>& by_rank) {
  const auto bad = std::find_if(by_rank.begin(), by_rank.end(), [](const auto& one) { return !one.empty(); });
  if (bad == by_rank.end()) return "";
  const bool alike = std::count(by_rank.begin(), by_rank.end(), *bad) == std::ssize(by_rank);
  return StatusOf(*bad, alike ? "" : fmt::format("rank {}: ", bad - by_rank.begin()));
}

}  // namespace

absl::Status EndTogether(const AgreeFunction& agree, uint64_t number, const absl::Status& own) {
  if (IsKnownToAll(own)) return own;
  const absl::Status agreed = agree("what ranks found", number, Payload(own), Decide).status();
  return own.ok() || IsKnownToAll(agreed) ? agreed : own;
}

}  // namespace ft
