// The page of a report: style, scripts and d3 are in the program; what they show goes between.
#pragma once

namespace ftc {

extern const char kPageBeforeDocument[];
extern const char kPageAfterDocument[];

}  // namespace ftc
