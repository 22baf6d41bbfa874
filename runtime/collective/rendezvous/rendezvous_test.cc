#include "runtime/collective/rendezvous/rendezvous.h"

#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "runtime/collective/net/socket.h"
#include "runtime/collective/rendezvous/meeting.h"
#include "runtime/collective/rendezvous/tcp_store_client.h"
#include "runtime/collective/rendezvous/tcp_store_protocol.h"
#include "runtime/collective/testing/test_world.h"

namespace ft {
namespace {

using testing::TestWorld;

absl::Time In(absl::Duration duration) { return absl::Now() + duration; }

TEST(TcpStoreTest, ClientAndServer) {
  auto server = TcpStoreServer::Start(0).value();
  auto a = TcpStoreClient::Connect("localhost", server->port(), In(absl::Seconds(5))).value();
  auto b = TcpStoreClient::Connect("127.0.0.1", server->port(), In(absl::Seconds(5))).value();
  ASSERT_TRUE(a->Set("k", "value").ok());
  EXPECT_EQ(b->Get("k", In(absl::Seconds(5))).value(), "value");
  EXPECT_EQ(a->Add("n", 3).value(), 3);
  EXPECT_EQ(b->Add("n", 4).value(), 7);
  EXPECT_EQ(a->Get("n", In(absl::Seconds(5))).value(), "7");
  EXPECT_TRUE(a->Check({"k", "n"}).value());
  EXPECT_FALSE(a->Check({"k", "later"}).value());
  // A time-out leaves the connection usable.
  EXPECT_TRUE(absl::IsDeadlineExceeded(b->Wait({"later"}, In(absl::Milliseconds(20)))));
  std::thread setter([&] { ASSERT_TRUE(a->Set("later", "now").ok()); });
  EXPECT_EQ(b->Get("later", In(absl::Seconds(5))).value(), "now");
  setter.join();
  const std::string large(3 << 20, 'x');
  ASSERT_TRUE(a->Set("large", large).ok());
  EXPECT_EQ(b->Get("large", In(absl::Seconds(5))).value(), large);
}

TEST(TcpStoreTest, ClientWritesTheHandshakeFirstAndAlone) {
  Listener listener = Listen(0).value();
  std::string received;
  std::thread fake([&] {
    Fd fd;
    while (!fd.valid()) fd = Accept(listener.fd.get());
    received.resize(5 + 1 + 8 + 8 + 13);
    ASSERT_TRUE(ReceiveAll(fd.get(), received.data(), received.size(), In(absl::Seconds(5))).ok());
    ASSERT_TRUE(SendAll(fd.get(), absl::string_view("\x01", 1), In(absl::Seconds(5))).ok());
  });
  EXPECT_TRUE(TcpStoreClient::Connect("127.0.0.1", listener.port, In(absl::Seconds(5))).ok());
  fake.join();
  using namespace std::string_literals;
  const std::string validate = "\x00\xCE\xF7\x85\x3C"s;
  const std::string one_key = "\x05\x01\x00\x00\x00\x00\x00\x00\x00"s;
  EXPECT_EQ(received, validate + one_key + "\x0D\x00\x00\x00\x00\x00\x00\x00/ftexec/hello"s);
}

TEST(TcpStoreTest, ConnectWaitsForALateServer) {
  const uint16_t port = Listen(0).value().port;
  std::unique_ptr<TcpStoreServer> server;
  std::thread late([&] {
    absl::SleepFor(absl::Milliseconds(150));
    server = TcpStoreServer::Start(port).value();
  });
  EXPECT_TRUE(TcpStoreClient::Connect("127.0.0.1", port, In(absl::Seconds(5))).ok());
  late.join();
}

TEST(TcpStoreTest, NobodyThereIsUnavailableAndNamesTheAddress) {
  const uint16_t port = Listen(0).value().port;
  const auto client = TcpStoreClient::Connect("127.0.0.1", port, In(absl::Milliseconds(100)));
  ASSERT_TRUE(absl::IsUnavailable(client.status()));
  EXPECT_NE(client.status().message().find("127.0.0.1:" + std::to_string(port)), std::string::npos);
}

TEST(TcpStoreTest, AClientThatTalksNonsenseDoesNotHarmOthers) {
  auto server = TcpStoreServer::Start(0).value();
  auto good = TcpStoreClient::Connect("127.0.0.1", server->port(), In(absl::Seconds(5))).value();
  Fd bad = ConnectOnce("127.0.0.1", server->port(), In(absl::Seconds(5))).value();
  ASSERT_TRUE(SendAll(bad.get(), "GET / HTTP/1.0\r\n\r\n", In(absl::Seconds(5))).ok());
  char byte = 0;
  EXPECT_TRUE(absl::IsUnavailable(ReceiveAll(bad.get(), &byte, 1, In(absl::Seconds(5)))));
  EXPECT_TRUE(good->Set("k", "v").ok());
  EXPECT_TRUE(good->Check({"k"}).value());
}

TEST(RendezvousTest, OneRankNeedsNoNetwork) {
  auto rendezvous = Rendezvous::Join(LaunchEnvironment{}, {}).value();
  EXPECT_EQ(rendezvous->world_size(), 1);
  EXPECT_TRUE(rendezvous->one_host());
  EXPECT_EQ(rendezvous->store(), nullptr);
}

TEST(RendezvousTest, AllLearnAboutAll) {
  TestWorld(5).RunThreads([](const Rendezvous& rendezvous) {
    EXPECT_EQ(rendezvous.world_size(), 5);
    EXPECT_EQ(rendezvous.generation(), 1);
    for (int rank = 0; rank < 5; ++rank) {
      const PeerInfo& peer = rendezvous.peers()[static_cast<size_t>(rank)];
      EXPECT_EQ(peer.rank, rank);
      EXPECT_EQ(peer.pid, getpid());
      EXPECT_EQ(peer.address, "127.0.0.1");
    }
    EXPECT_TRUE(rendezvous.one_host());
  });
}

TEST(RendezvousTest, RankZeroServesWhenNoAgentDoes) {
  const uint16_t port = Listen(0).value().port;
  TestWorld world(3);
  world.EachRank([&](int rank) {
    LaunchEnvironment environment = world.EnvironmentOf(rank);
    environment.master_port = port;
    environment.agent_store = false;
    auto rendezvous = Rendezvous::Join(environment, TestWorld::Options());
    ASSERT_TRUE(rendezvous.ok()) << rendezvous.status();
    EXPECT_EQ((*rendezvous)->world_size(), 3);
  });
}

TEST(RendezvousTest, ATakenPortIsNamed) {
  const Listener taken = Listen(0).value();
  LaunchEnvironment environment = TestWorld(2).EnvironmentOf(0);
  environment.master_port = taken.port;
  environment.agent_store = false;
  const absl::Status status = Rendezvous::Join(environment, TestWorld::Options()).status();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_NE(status.message().find("MASTER_PORT=" + std::to_string(taken.port)), std::string::npos) << status;
}

// The store of an agent that restarts its workers still holds what the last attempt wrote.
TEST(RendezvousTest, ASecondAttemptOnTheSameStoreGetsItsOwnGeneration) {
  TestWorld world(3);
  for (int attempt = 1; attempt <= 3; ++attempt) {
    world.RunThreads([&](const Rendezvous& rendezvous) {
      EXPECT_EQ(rendezvous.generation(), attempt);
      EXPECT_FALSE(rendezvous.store()->Check({"mine"}).value());
      // Nobody sets it before all have looked.
      ASSERT_TRUE(rendezvous.store()->Set("looked/" + std::to_string(rendezvous.rank()), "").ok());
      ASSERT_TRUE(rendezvous.store()->Wait({"looked/0", "looked/1", "looked/2"}, In(absl::Seconds(10))).ok());
      ASSERT_TRUE(rendezvous.store()->Set("mine", "x").ok());
    });
  }
}

// Joins with `change` applied and returns each rank's error.
std::vector<absl::Status> JoinAll(
    int size, absl::Duration timeout,
    const std::function<bool(int, LaunchEnvironment*, RendezvousOptions*)>& change) {
  TestWorld world(size);
  std::vector<absl::Status> statuses(static_cast<size_t>(size));
  world.EachRank([&](int rank) {
    LaunchEnvironment environment = world.EnvironmentOf(rank);
    RendezvousOptions options = TestWorld::Options();
    options.timeout = timeout;
    if (change(rank, &environment, &options)) {
      statuses[static_cast<size_t>(rank)] = Rendezvous::Join(environment, options).status();
    }
  });
  return statuses;
}

TEST(RendezvousTest, DifferentPlansAreRefusedEverywhere) {
  const auto statuses =
      JoinAll(4, absl::Seconds(10), [](int rank, LaunchEnvironment*, RendezvousOptions* options) {
        options->label = rank == 3 ? "b.bin" : "a.bin";
        if (rank == 3) options->fingerprint = "other";
        return true;
      });
  for (const absl::Status& status : statuses) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    for (const char* word : {"different plans", "rank 0", "a.bin [same]", "rank 3", "b.bin [other]"}) {
      EXPECT_NE(status.message().find(word), std::string::npos) << status;
    }
  }
}

TEST(RendezvousTest, ASettingThatDiffersIsNamed) {
  const auto statuses =
      JoinAll(3, absl::Seconds(10), [](int rank, LaunchEnvironment*, RendezvousOptions* options) {
        options->fingerprint = rank == 2 ? "plan=12ab steps=5 lr=0.2" : "plan=12ab steps=5 lr=0.1";
        return true;
      });
  for (const absl::Status& status : statuses) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    for (const char* words :
         {"ranks differ in lr: 0.1 on rank 0 (", "), 0.2 on rank 2 (", "the same plan and options"})
      EXPECT_NE(status.message().find(words), std::string::npos) << status;
    EXPECT_EQ(status.message().find("steps"), std::string::npos) << status;
  }
}

TEST(RendezvousTest, ASettingThatOneRankHasIsNamed) {
  struct Case {
    const char *rank_0, *rank_1, *said;
  };
  const Case cases[] = {
      {"plan=1 lr=2", "plan=1 eval_data=ab lr=2",
       "ranks differ in eval_data: not given on rank 0 (a), ab on rank 1 (b); "},
      {"plan=1 eval_data=ab eval_every=5 lr=2", "plan=1 lr=2",
       "ranks differ in eval_data: ab on rank 0 (a), not given on rank 1 (b); "},
      {"plan=1 resume= lr=2", "plan=1 resume=my runs/x lr=2",
       "ranks differ in resume: not given on rank 0 (a), my runs/x on rank 1 (b); "},
      {"plan=1 schedule=no such one lr=2", "plan=1 lr=2",
       "ranks differ in schedule: no such one on rank 0 (a), not given on rank 1 (b); "},
      {"plan=1 lr=2", "check=on", "ranks differ in check: not given on rank 0 (a), on on rank 1 (b); "},
      {"check=on", "plan=1 lr=2", "ranks differ in check: on on rank 0 (a), not given on rank 1 (b); "},
      {"plan=1 lr=2", "plan=2 eval_data=ab lr=2", "ranks hold different plans: "},
      {"plan=1 lr=2", "other", "ranks hold different plans: "},
  };
  for (const Case& one : cases) {
    PeerInfo first, second;
    first.hostname = "a", first.fingerprint = one.rank_0;
    second.rank = 1, second.hostname = "b", second.fingerprint = one.rank_1;
    const absl::Status status = CompareFingerprints({first, second});
    EXPECT_EQ(status.message().find(one.said), 0u) << status;
  }
}

TEST(RendezvousTest, MissingRanksAreNamed) {
  const auto statuses =
      JoinAll(4, absl::Milliseconds(400),
              [](int rank, LaunchEnvironment*, RendezvousOptions*) { return rank != 1 && rank != 3; });
  for (const int rank : {0, 2}) {
    const absl::Status& status = statuses[static_cast<size_t>(rank)];
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_NE(status.message().find("ranks 1, 3 of 4"), std::string::npos) << status;
  }
}

TEST(RendezvousTest, AMissingRankZeroIsNamed) {
  const auto statuses = JoinAll(2, absl::Milliseconds(200),
                                [](int rank, LaunchEnvironment*, RendezvousOptions*) { return rank != 0; });
  EXPECT_TRUE(absl::IsUnavailable(statuses[1]));
  EXPECT_NE(statuses[1].message().find("rank 0 did not arrive"), std::string::npos) << statuses[1];
}

TEST(RendezvousTest, DuplicateRanksAreNamed) {
  const auto statuses =
      JoinAll(3, absl::Seconds(10), [](int rank, LaunchEnvironment* environment, RendezvousOptions*) {
        if (rank == 2) environment->rank = 1;
        return true;
      });
  for (const absl::Status& status : statuses) {
    EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
    EXPECT_NE(status.message().find("two processes claim rank 1"), std::string::npos) << status;
  }
}

}  // namespace
}  // namespace ft
