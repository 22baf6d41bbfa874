// What `ftc explain --json` prints, before it is text.
#pragma once

#include "nlohmann/json_fwd.hpp"
#include "tools/ftc/explain.h"

namespace ftc {

nlohmann::ordered_json ExplainDocument(const Explained& explained, int peak);

}  // namespace ftc
