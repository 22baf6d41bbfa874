// The bytes of the protocol, as a client of PyTorch writes and reads them.
#include "runtime/collective/rendezvous/store_engine.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace ft {
namespace {

using namespace std::string_literals;

const std::string kHandshake = "\x00\xCE\xF7\x85\x3C"s;

std::string Text(const std::string& text) {
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(text.size());
  return bytes + text;
}
std::string Number(int64_t value) { return std::string(reinterpret_cast<const char*>(&value), 8); }

class StoreEngineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Send(&a_, kHandshake));
    ASSERT_TRUE(Send(&b_, kHandshake));
  }
  bool Send(StoreSession* session, const std::string& bytes) {
    session->in += bytes;
    return engine_.Process(session);
  }
  std::string Ask(const std::string& bytes) {
    EXPECT_TRUE(Send(&a_, bytes));
    return std::exchange(a_.out, "");
  }

  StoreEngine engine_;
  StoreSession a_, b_;
};

TEST_F(StoreEngineTest, TheHandshakeHasNoReplyAndHasToComeFirst) {
  EXPECT_EQ(a_.out, "");
  StoreSession rude;
  EXPECT_FALSE(Send(&rude, "\x03"s + Text("/k")));
  StoreSession wrong;
  EXPECT_FALSE(Send(&wrong, "\x00\xCE\xF7\x85\x3D"s));
}

TEST_F(StoreEngineTest, SetAndGet) {
  EXPECT_EQ(Ask("\x01"s + Text("/k") + Text("value")), "");
  EXPECT_EQ(Ask("\x03"s + Text("/k")), Text("value"));
  EXPECT_EQ(Ask("\x03"s + Text("/missing")), Text(""));
}

TEST_F(StoreEngineTest, AddStoresDecimalText) {
  EXPECT_EQ(Ask("\x04"s + Text("/n") + Number(5)), Number(5));
  EXPECT_EQ(Ask("\x04"s + Text("/n") + Number(-7)), Number(-2));
  EXPECT_EQ(Ask("\x03"s + Text("/n")), Text("-2"));
  ASSERT_TRUE(Send(&a_, "\x01"s + Text("/t") + Text("text")));
  EXPECT_FALSE(Send(&a_, "\x04"s + Text("/t") + Number(1)));
}

TEST_F(StoreEngineTest, CheckAnswersZeroForPresent) {
  Ask("\x01"s + Text("/k") + Text(""));
  EXPECT_EQ(Ask("\x05"s + Number(1) + Text("/k")), "\x00"s);
  EXPECT_EQ(Ask("\x05"s + Number(2) + Text("/k") + Text("/l")), "\x01"s);
}

TEST_F(StoreEngineTest, WaitIsAnsweredWhenTheLastKeyComes) {
  EXPECT_EQ(Ask("\x06"s + Number(2) + Text("/k") + Text("/l")), "");
  ASSERT_TRUE(Send(&b_, "\x01"s + Text("/k") + Text("")));
  EXPECT_EQ(a_.out, "");
  ASSERT_TRUE(Send(&b_, "\x04"s + Text("/l") + Number(1)));
  EXPECT_EQ(a_.out, "\x00"s);
}

TEST_F(StoreEngineTest, CancelledWaitIsNotAnsweredLater) {
  EXPECT_EQ(Ask("\x06"s + Number(1) + Text("/k")), "");
  EXPECT_EQ(Ask("\x0C"), "\x01"s);
  ASSERT_TRUE(Send(&b_, "\x01"s + Text("/k") + Text("")));
  EXPECT_EQ(a_.out, "");
}

TEST_F(StoreEngineTest, ASessionThatLeavesIsForgotten) {
  EXPECT_EQ(Ask("\x06"s + Number(1) + Text("/k")), "");
  engine_.Remove(&a_);
  ASSERT_TRUE(Send(&b_, "\x01"s + Text("/k") + Text("")));
  EXPECT_EQ(a_.out, "");
}

TEST_F(StoreEngineTest, PingIsEchoed) { EXPECT_EQ(Ask("\x0D\x01\x02\x03\x04"s), "\x01\x02\x03\x04"s); }

TEST_F(StoreEngineTest, CompareSet) {
  EXPECT_EQ(Ask("\x02"s + Text("/c") + Text("x") + Text("y")), Text("x"));  // missing: nothing stored
  EXPECT_EQ(Ask("\x05"s + Number(1) + Text("/c")), "\x01"s);
  EXPECT_EQ(Ask("\x02"s + Text("/c") + Text("") + Text("y")), Text("y"));
  EXPECT_EQ(Ask("\x02"s + Text("/c") + Text("x") + Text("z")), Text("y"));
  EXPECT_EQ(Ask("\x02"s + Text("/c") + Text("y") + Text("z")), Text("z"));
}

TEST_F(StoreEngineTest, TheOtherRequests) {
  EXPECT_EQ(Ask("\x09"s + Text("/a") + Text("12") + "\x09"s + Text("/a") + Text("3")), "");
  EXPECT_EQ(Ask("\x0B"s + Number(2) + Text("/m") + Text("1") + Text("/o") + Text("2")), "");
  EXPECT_EQ(Ask("\x0A"s + Number(2) + Text("/a") + Text("/o")), Text("123") + Text("2"));
  EXPECT_EQ(Ask("\x07"), Number(3));
  EXPECT_EQ(Ask("\x08"s + Text("/a")), Number(1));
  EXPECT_EQ(Ask("\x08"s + Text("/a")), Number(0));
  EXPECT_EQ(Ask("\x07"), Number(2));
}

TEST_F(StoreEngineTest, RequestsMayComeInPiecesAndTogether) {
  const std::string bytes = "\x01"s + Text("/k") + Text("v") + "\x03"s + Text("/k") + "\x0D\x01\x00\x00\x00"s;
  for (const char c : bytes) ASSERT_TRUE(Send(&a_, std::string(1, c)));
  EXPECT_EQ(std::exchange(a_.out, ""), Text("v") + "\x01\x00\x00\x00"s);
  EXPECT_EQ(Ask(bytes), Text("v") + "\x01\x00\x00\x00"s);
}

TEST_F(StoreEngineTest, LimitsAndNonsenseDisconnect) {
  EXPECT_FALSE(Send(&a_, "\x03"s + Number(8193)));
  StoreSession c;
  ASSERT_TRUE(Send(&c, kHandshake));
  EXPECT_FALSE(Send(&c, "\x01"s + Text("/k") + Number((8 << 20) + 1)));
  StoreSession d;
  ASSERT_TRUE(Send(&d, kHandshake));
  EXPECT_FALSE(Send(&d, "\x06"s + Number(131073)));
  StoreSession e;
  ASSERT_TRUE(Send(&e, kHandshake));
  EXPECT_FALSE(Send(&e, "\x63"));
  StoreSession f;
  ASSERT_TRUE(Send(&f, kHandshake));
  EXPECT_FALSE(Send(&f, "\x0B"s + Number(-1)));
}

}  // namespace
}  // namespace ft
