// All collectives, for any transport that exchanges data in rounds.
#pragma once

#include <memory>

#include "runtime/collective/communicator.h"
#include "runtime/collective/rounds/round_exchange.h"

namespace ft {

std::unique_ptr<Communicator> CreateRoundCommunicator(std::unique_ptr<RoundExchange> exchange);

}  // namespace ft
