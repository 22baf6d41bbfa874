#include "runtime/metrics/markdown.h"

#include <gtest/gtest.h>

namespace ft {
namespace {

// Whether a reader of markdown shows what it should is tried with TensorBoard's own, in test/interop.

TEST(MarkdownTest, EscapesWhatWouldBeRead) {
  EXPECT_EQ(MarkdownText("full_shard"), "full\\_shard");
  EXPECT_EQ(MarkdownText("a|b `c` *d* [e](f) {g} \\"), "a\\|b \\`c\\` \\*d\\* \\[e\\](f) \\{g\\} \\\\");
  EXPECT_EQ(MarkdownText("<b>&amp;"), "&lt;b&gt;&amp;amp;");
  EXPECT_EQ(MarkdownText("two\nlines\x1b\xff"), "two\\\\nlines\\\\x1b\\\\xff");
  EXPECT_EQ(MarkdownText("\xc3\xa9"), "\xc3\xa9");
  EXPECT_EQ(MarkdownText(""), "");
}

TEST(MarkdownTest, TableHasARowForEach) {
  EXPECT_EQ(MarkdownTable("setting", "value", {{"lr", "0.1"}, {"d|ata", ""}}),
            "| setting | value |\n|---|---|\n| lr | 0.1 |\n| d\\|ata |  |\n");
}

TEST(MarkdownTest, NothingInABlockEndsIt) {
  EXPECT_EQ(MarkdownBlock("a  1\nb  2\n"), "```\na  1\nb  2\n```\n");
  EXPECT_EQ(MarkdownBlock("no end"), "```\nno end\n```\n");
  EXPECT_EQ(MarkdownBlock("```\n<b>\n````"), "`````\n```\n<b>\n````\n`````\n");
  EXPECT_EQ(MarkdownBlock("\x1b[0m"), "```\n\\x1b[0m\n```\n");
}

}  // namespace
}  // namespace ft
