#include "runtime/collective/rendezvous/environment_variables.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace ft {

absl::Status BadVariable(const char* name, const char* value, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("environment variable ", name, "='", value, "' ", what));
}

absl::Status ReadNumber(EnvironmentLookup lookup, const char* name, int low, int high, int* out) {
  const char* value = lookup(name);
  if (value == nullptr) return absl::OkStatus();
  int number = 0;
  if (!absl::SimpleAtoi(value, &number)) return BadVariable(name, value, "is not a number");
  if (number < low || number > high) {
    return BadVariable(name, value,
                       absl::StrCat("is out of range: it has to be between ", low, " and ", high));
  }
  *out = number;
  return absl::OkStatus();
}

int NumberOf(absl::string_view value) {
  int largest = 0;
  for (const absl::string_view part : absl::StrSplit(value, ':')) {
    int number = 0;
    if (absl::SimpleAtoi(part, &number)) largest = std::max(largest, number);
  }
  return largest;
}

}  // namespace ft
