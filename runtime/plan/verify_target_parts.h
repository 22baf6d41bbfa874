// Parts of VerifyTarget: what a target knows beside its rates and links.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"

namespace ft {

inline constexpr int kMostPoints = 256;  // of a curve
inline constexpr uint32_t kMostRanksOnNode = 1024;

// InvalidArgument that names the figure.
absl::Status VerifyTargetParts(const proto::Target& target);

}  // namespace ft
