// What target files say of a machine that was measured (ftexec --calibrate).
#pragma once

#include <vector>

#include "tools/ftc/config/target_figures.h"

namespace ftc {

// How it was measured, and the kernels that were timed as they are.
void AddMeasured(std::vector<Figure>& figures);

}  // namespace ftc
