// Runs a case on a bench.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "test/conformance/bench.h"
#include "test/conformance/case.h"

namespace ft::conformance {

// The results' values; `share_reusable` runs in place where the case allows it. Errors: those of the bench;
// Internal when something behind a buffer was written.
absl::StatusOr<Arrays> RunCase(Bench& bench, const Case& c, bool share_reusable);

// Scratch that a case declares for this kind of device.
int64_t WorkspaceBytes(const Case& c, DeviceClass device_class);

// Empty when `got` is what the case expects of this kind of device, else what differs and where.
std::string Compare(const Case& c, const Arrays& got, DeviceClass device_class, bool bf16_products = false);

// Empty when both hold the same numbers, NaN being NaN, else where they differ.
std::string DifferentBits(const Arrays& a, const Arrays& b);

}  // namespace ft::conformance
