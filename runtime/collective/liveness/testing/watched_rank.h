// Ranks for tests that are processes of their own and watch their peers.
#pragma once

#include <functional>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/collective/liveness/peer_monitor.h"
#include "runtime/collective/testing/test_world.h"

namespace ft::testing {

// Joins `world` as `rank`, starts its monitor, writes the line "ready", and then does what `body` says; its
// result is the process's exit status. Without a body it does nothing any more.
inline ForkedRank StartWatchedRank(
    const TestWorld& world, int rank,
    std::function<int(PeerMonitor& monitor, int out)> body = [](PeerMonitor&, int) {
      absl::SleepFor(absl::Seconds(60));
      return 0;
    }) {
  return ForkedRank([&](int out) {
    const auto rendezvous = Rendezvous::Join(world.EnvironmentOf(rank), TestWorld::Options()).value();
    const auto monitor = PeerMonitor::Start(*rendezvous).value();
    WriteLine(out, "ready");
    return body(*monitor, out);
  });
}

}  // namespace ft::testing
