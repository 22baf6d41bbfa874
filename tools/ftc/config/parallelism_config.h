// Accelerate's parallelism_config, as far as data are parallel.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/ftc/config/file_view.h"
#include "tools/ftc/config/given.h"

namespace ftc {

// Where the parameters are replicated and sharded, both over more than one rank, a strategy of `given`
// becomes its hybrid and `given` gets the mesh. A mistake in words, "" when there is none; `entry` is then
// the key.
std::string ApplyParallelism(const FileView& view, std::vector<Given>& given,
                             std::vector<std::string>& remarks, const YamlEntry*& entry);

}  // namespace ftc
