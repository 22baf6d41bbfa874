#include "runtime/base/printable.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"

namespace ft {
namespace {

TEST(PrintableTest, TextStaysAsItIs) {
  for (const char* text :
       {"", "plain", "\xc3\xa9t\xc3\xa9", "\xe6\x97\xa5\xe6\x9c\xac", "\xf0\x9f\x99\x82", "a\\b'c\"d"}) {
    EXPECT_EQ(Printable(text), text);
    EXPECT_EQ(OneLine(text), text);
  }
  EXPECT_EQ(Printable("a\n\tb\n"), "a\n\tb\n");
}

TEST(PrintableTest, WhatATerminalObeysIsEscaped) {
  EXPECT_EQ(OneLine("tensor 'a\nb\x1b[31m\t\r\x7f'"), "tensor 'a\\nb\\x1b[31m\\x09\\x0d\\x7f'");
  EXPECT_EQ(Printable("\x1b]0;title\x07\n"), "\\x1b]0;title\\x07\n");
  EXPECT_EQ(OneLine(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(OneLine("\xc2\x9b[31m"), "\\xc2\\x9b[31m");  // CSI as one character
  EXPECT_EQ(OneLine("\xe2\x80\xae"
                    "txt"),
            "\\xe2\\x80\\xaetxt");  // right to left from here on
  EXPECT_EQ(OneLine("a\xe2\x80\xa8"
                    "b"),
            "a\\xe2\\x80\\xa8"
            "b");  // a line's end
}

TEST(PrintableTest, BytesThatAreNotUtf8AreEscaped) {
  EXPECT_EQ(OneLine("\xff\xfe ok \xc3"), "\\xff\\xfe ok \\xc3");
  EXPECT_EQ(OneLine("\xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80"),
            "\\xc0\\xaf \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80");
}

TEST(PrintableTest, TheMiddleOfALongLineIsLeftOut) {
  const std::string text = "begin " + std::string(94 << 20, 'A') + " end";
  const std::string line = OneLine(text);
  EXPECT_LE(line.size(), kMaxLineBytes);
  EXPECT_GE(line.size(), kMaxLineBytes - 8);
  EXPECT_TRUE(absl::StartsWith(line, "begin AAA"));
  EXPECT_TRUE(absl::EndsWith(line, "AAA end"));
  EXPECT_TRUE(absl::StrContains(line, "[... of 98566154 bytes ...]"));
  EXPECT_EQ(OneLine(line), line);
}

// Every line is text again, whatever is cut, and escaping a second time changes nothing.
TEST(PrintableTest, LinesAreTextWithinTheirBound) {
  for (const char* unit : {"a", "\xc3\xa9", "\xe6\x97\xa5", "\xf0\x9f\x99\x82", "\xff", "\n", "\x1b"}) {
    for (size_t count = 1; count < 300; ++count) {
      std::string text;
      for (size_t i = 0; i < count; ++i) text += unit;
      const std::string line = OneLine(text, 64);
      ASSERT_LE(line.size(), 64u) << text;
      for (std::string_view rest = line; !rest.empty();) {
        ASSERT_GT(Utf8SequenceLength(rest), 0u) << line;
        rest.remove_prefix(Utf8SequenceLength(rest));
      }
      ASSERT_EQ(OneLine(line, 64), line);
    }
  }
}

TEST(PrintableTest, NamesAreQuoted) {
  EXPECT_EQ(Quote("model.embed"), "'model.embed'");
  EXPECT_EQ(Quote("a\x1b"), "'a\\x1b'");
  EXPECT_LE(Quote(std::string(10000, 'n')).size(), kMaxNameBytes + 2);
}

}  // namespace
}  // namespace ft
