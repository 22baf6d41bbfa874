#include "tools/ftexec/together.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/collective/liveness/agreement.h"
#include "runtime/collective/liveness/peer_monitor.h"
#include "runtime/collective/testing/test_world.h"

namespace ft {
namespace {

using testing::TestWorld;

// What each rank gets where these are the ranks' own.
std::vector<absl::Status> EndOf(const std::vector<absl::Status>& own) {
  std::vector<absl::Status> ends(own.size());
  TestWorld(static_cast<int>(own.size())).RunThreads([&](const Rendezvous& rendezvous) {
    const auto monitor = PeerMonitor::Start(rendezvous).value();
    const AgreeFunction agree = [&](std::string_view topic, uint64_t number, std::string payload,
                                    auto decide) {
      return monitor->Agree(topic, number, std::move(payload), decide, absl::Seconds(30));
    };
    const auto rank = static_cast<size_t>(rendezvous.rank());
    ASSERT_TRUE(EndTogether(agree, 0, absl::OkStatus()).ok());
    ends[rank] = EndTogether(agree, 1, own[rank]);
    // Once more: nobody is asked.
    if (IsKnownToAll(ends[rank])) {
      EXPECT_EQ(EndTogether(agree, 2, ends[rank]), ends[rank]);
    }
    EXPECT_TRUE(monitor->Goodbye().ok());
  });
  return ends;
}

TEST(TogetherTest, WhereAllAreWellTheyGoOn) {
  for (const absl::Status& end : EndOf(std::vector<absl::Status>(3))) EXPECT_TRUE(end.ok()) << end;
}

TEST(TogetherTest, WhatAllSayNamesNoRank) {
  const absl::Status bad = absl::InvalidArgumentError("other data");
  for (const absl::Status& end : EndOf({bad, bad, bad})) {
    EXPECT_EQ(end.code(), bad.code());
    EXPECT_EQ(end.message(), "other data");
    EXPECT_TRUE(IsKnownToAll(end));
  }
}

TEST(TogetherTest, WhatOneSaysAllEndForAndItIsNamed) {
  const absl::Status room = absl::ResourceExhaustedError("no room");
  for (const std::vector<absl::Status>& own : {std::vector<absl::Status>{{}, room, {}},
                                               {{}, room, absl::InternalError("later")},
                                               {{}, room, room}}) {
    for (const absl::Status& end : EndOf(own)) {
      EXPECT_EQ(end.code(), room.code());
      EXPECT_EQ(end.message(), "rank 1: no room");
      EXPECT_TRUE(IsKnownToAll(end));
    }
  }
}

}  // namespace
}  // namespace ft
