#include "runtime/collective/liveness/channel.h"

#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ft {
namespace {

using Messages = std::vector<std::pair<PeerMessageType, std::string>>;

// Two ends of a stream; what is not read stays in it.
class ChannelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    const int room = 1 << 20;
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    a_ = Channel(Fd(ends[0]));
    raw_ = ends[1];
    b_ = Channel(Fd(ends[1]));
  }

  // What b reads of what is there.
  Messages Read() {
    Messages messages;
    b_.Read([&](PeerMessageType type, absl::string_view text) { messages.emplace_back(type, text); });
    return messages;
  }
  // Bytes that wait for b.
  int Waiting() const {
    int bytes = 0;
    ioctl(raw_, FIONREAD, &bytes);
    return bytes;
  }

  Channel a_, b_;
  int raw_ = -1;
};

TEST_F(ChannelTest, MessagesComeInOrder) {
  a_.Queue(PeerMessageType::kWish, "one");
  a_.Queue(PeerMessageType::kGoodbye, "");
  a_.Flush();
  EXPECT_FALSE(a_.HasUnsent());
  EXPECT_EQ(Read(), (Messages{{PeerMessageType::kWish, "one"}, {PeerMessageType::kGoodbye, ""}}));
}

TEST_F(ChannelTest, AMessageMayComeByteByByte) {
  a_.Queue(PeerMessageType::kFailed, "the disk is full");
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  Channel slow{Fd(ends[1])};
  const Fd writer(ends[0]);
  a_.Flush();
  std::string bytes(100, 0);
  const ssize_t size = recv(raw_, bytes.data(), bytes.size(), 0);
  ASSERT_EQ(size, 5 + 16);
  Messages messages;
  for (ssize_t i = 0; i < size; ++i) {
    EXPECT_TRUE(messages.empty());
    ASSERT_EQ(send(writer.get(), &bytes[static_cast<size_t>(i)], 1, 0), 1);
    slow.Read([&](PeerMessageType type, absl::string_view text) { messages.emplace_back(type, text); });
  }
  EXPECT_EQ(messages, (Messages{{PeerMessageType::kFailed, "the disk is full"}}));
}

TEST_F(ChannelTest, AVerdictOvertakesALongText) {
  std::string text;
  for (int i = 0; text.size() < 3'000'000; ++i) text += std::to_string(i);
  a_.QueueText("head", std::make_shared<const std::string>(text));
  a_.Flush();
  a_.Queue(PeerMessageType::kVerdict, "rank 2 was lost");
  std::string arrived;
  size_t before_verdict = 0;
  for (int i = 0; i < 10'000 && arrived.size() < text.size(); ++i) {
    a_.Flush();
    for (const auto& [type, message] : Read()) {
      if (type == PeerMessageType::kTextBegin) {
        EXPECT_EQ(message.substr(8), "head");
      }
      if (type == PeerMessageType::kTextPart) arrived += message;
      if (type == PeerMessageType::kVerdict) before_verdict = arrived.size();
    }
    b_.Flush();
    a_.Read([](PeerMessageType type, absl::string_view) { ADD_FAILURE() << static_cast<int>(type); });
  }
  EXPECT_EQ(arrived, text);
  EXPECT_GT(before_verdict, 0u);
  EXPECT_LT(before_verdict, 200'000u);
  EXPECT_FALSE(a_.HasUnsent());
}

// Whose process is stopped has only as much waiting as a socket's smallest buffer takes.
TEST_F(ChannelTest, OfATextThatNobodyReadsLittleIsOnItsWay) {
  a_.QueueText("", std::make_shared<const std::string>(std::string(1 << 20, 'x')));
  a_.Flush();
  EXPECT_GT(Waiting(), 32 << 10);
  EXPECT_LT(Waiting(), 66 << 10);
  EXPECT_TRUE(a_.HasUnsent());
  EXPECT_FALSE(a_.WantsToSend()) << "polling would spin";
  a_.DropTexts();
  EXPECT_FALSE(a_.HasUnsent());
}

TEST_F(ChannelTest, WhatHasNoRoomIsDroppedAndTakesNoMemory) {
  const std::string figure(16, 'f');
  int taken = 0;
  for (int i = 0; i < 100'000; ++i) taken += a_.QueueIfRoom(PeerMessageType::kStepTime, figure) ? 1 : 0;
  EXPECT_GT(taken, 100);
  EXPECT_LT(taken, 2000);
  a_.Flush();
  EXPECT_EQ(Read().size(), static_cast<size_t>(taken));
  EXPECT_TRUE(a_.QueueIfRoom(PeerMessageType::kStepTime, figure));
}

TEST_F(ChannelTest, NonsenseClosesIt) {
  for (const std::string& nonsense : {std::string("\x63\x01\x00\x00\x00x", 6),    // no such type
                                      std::string("\x02\xff\xff\xff\xff", 5),     // 4 GiB
                                      std::string("\x00\x00\x00\x00\x00", 5)}) {  // nor this one
    SetUp();
    a_.Queue(PeerMessageType::kWish, "before");
    a_.Flush();
    ASSERT_GT(send(a_.fd(), nonsense.data(), nonsense.size(), 0), 0);
    EXPECT_EQ(Read(), (Messages{{PeerMessageType::kWish, "before"}}));
    EXPECT_FALSE(b_.open());
    EXPECT_EQ(b_.error(), 0);
  }
}

// The last words of a process that is gone are read, although nothing can be sent to it any more.
TEST_F(ChannelTest, LastWordsOutliveTheirConnection) {
  a_.Queue(PeerMessageType::kFailed, "a reason");
  a_.Flush();
  a_.Close();
  b_.Queue(PeerMessageType::kOrder, "too late");
  b_.Flush();
  b_.Queue(PeerMessageType::kOrder, "too late");
  b_.Flush();
  EXPECT_TRUE(b_.open());
  EXPECT_FALSE(b_.HasUnsent());
  EXPECT_EQ(Read(), (Messages{{PeerMessageType::kFailed, "a reason"}}));
  EXPECT_FALSE(b_.open());
}

}  // namespace
}  // namespace ft
