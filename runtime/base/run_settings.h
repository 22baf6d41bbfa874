// The settings of a run, with their defaults: what a plan keeps for ftexec.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/setting_value.h"

namespace ft {

struct RunSettings {
#define FT_RUN(TYPE, NAME, DEFAULT, ...) TYPE NAME = DEFAULT;
#define FT_PLANNED(TYPE, NAME, DEFAULT, ...) TYPE NAME = DEFAULT;
#include "runtime/base/settings.def"
};

}  // namespace ft
