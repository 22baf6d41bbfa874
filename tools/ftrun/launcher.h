// ftrun from start to end: the store, the ranks, restarts.
#pragma once

#include "tools/ftrun/options.h"
#include "tools/ftrun/supervisor.h"

namespace ft::run {

// Runs all attempts; returns ftrun's exit status, or dies of the signal that ended it. Prints one line to
// stderr when it fails.
int Launch(const Options& options, const SupervisorOptions& supervisor_options = {});

}  // namespace ft::run
