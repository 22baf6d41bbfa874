// Keys that are absent: what the program whose file it is would take for them.
#pragma once

#include <string>
#include <vector>

#include "tools/ftc/config/file_view.h"
#include "tools/ftc/config/given.h"

namespace ftc {

// Adds to `given`, which is all that the file says, what follows from keys that are not there: DeepSpeed's
// defaults in its own files and for its optimizer, scheduler and fp16 sections, Accelerate's where a
// distributed_type is given. `remarks` gets a line for what is not our own default, and for what is although
// another program would have taken something else.
void AddProgramDefaults(const FileView& view, const std::vector<Given>& flags, std::vector<Given>& given,
                        std::vector<std::string>& remarks);

}  // namespace ftc
