// Collectives of a group with one rank: copies and scalings.
#pragma once

#include <memory>

#include "runtime/collective/communicator.h"

namespace ft {

std::unique_ptr<Communicator> CreateLocalCommunicator();

}  // namespace ft
