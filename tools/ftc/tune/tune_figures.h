// What people compare of a row of ftc tune.
#pragma once

#include "tools/ftc/tune/tuning.h"

namespace ftc {

struct Figures {
  double tokens_per_s = 0;  // of all ranks
  double mfu = 0;           // by the data sheet's peak of the type computed with; 0: peak not known
};

Figures FiguresOf(const Tuning& tuning, const ft::compiler::TuneTrial& trial);

}  // namespace ftc
