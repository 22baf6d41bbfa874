#include "runtime/metrics/event_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "runtime/base/exit_status.h"
#include "runtime/base/testing/temp_folder.h"
#include "runtime/metrics/testing/event_reader.h"

namespace ft {
namespace {

double Noon() { return 1790000000.25; }
double LongAgo() { return 12.5; }
double BeyondTenDigits() { return 1e11; }

class EventFileTest : public testing::Test {
 protected:
  std::unique_ptr<EventFile> Open(int64_t first_step = 0, double (*clock)() = Noon) {
    auto file = EventFile::Open(folder_.Path("."), {.first_step = first_step, .wall_clock = clock});
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }
  static std::string NameOf(const EventFile& file) { return std::filesystem::path(file.path()).filename(); }
  static std::vector<ReadEvent> Read(const EventFile& file) {
    return ReadEvents(TempFolder::Read(file.path()));
  }

  TempFolder folder_;
};

TEST_F(EventFileTest, ChecksumsAreThoseOfRfc3720) {
  // Appendix B.4, masked: the published ones of 32 zeros, 32 ones and 0 ... 31.
  const auto masked = [](uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; };
  std::string counting;
  for (char c = 0; c < 32; ++c) counting += c;
  EXPECT_EQ(BitwiseCrc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(MaskedCrc32c(std::string(32, '\0')), masked(0x8a9136aau));
  EXPECT_EQ(MaskedCrc32c(std::string(32, '\xff')), masked(0x62a8ab43u));
  EXPECT_EQ(MaskedCrc32c(counting), masked(0x46dd794eu));
  EXPECT_EQ(MaskedCrc32c("123456789"), masked(0xe3069283u));
  EXPECT_EQ(MaskedCrc32c(""), masked(0));
}

TEST_F(EventFileTest, BeginsWithVersionAndStart) {
  const auto file = Open(17);
  const std::vector<ReadEvent> events = Read(*file);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].message.Bytes(3), "brain.Event:2");
  EXPECT_EQ(events[0].wall_time, Noon());
  EXPECT_EQ(events[1].step, 17);
  EXPECT_EQ(WireMessage::Parse(events[1].message.Bytes(7)).Number(1), 1u);
  EXPECT_TRUE(file->status().ok());
}

TEST_F(EventFileTest, FirstBytesAreThoseOfOtherWriters) {
  // The first record of a file, as TensorFlow has written it since 2015.
  const auto file = Open();
  const std::string text = TempFolder::Read(file->path());
  EXPECT_EQ(text.substr(0, 8), std::string("\x1a\0\0\0\0\0\0\0", 8));  // 9 + 2 + 15 bytes
  EXPECT_EQ(text.substr(12, 1), "\x09");
  EXPECT_EQ(text.substr(12 + 11, 15),
            "\x1a\x0d"
            "brain.Event:2");
}

TEST_F(EventFileTest, WritesScalarsAsFloats) {
  const auto file = Open();
  const double values[] = {0.1,          -0.0,      5e-324,   1e39,     -std::numeric_limits<double>::max(),
                           3.4028234e38, 123456789, INFINITY, -INFINITY};
  std::vector<EventScalar> scalars;
  for (double value : values) scalars.push_back({"a/b", value});
  for (int64_t step : {int64_t{-1}, int64_t{0}, int64_t{127}, int64_t{1} << 40})
    file->WriteScalars(step, scalars);
  file->WriteScalars(5, {});  // nothing
  const std::vector<ReadEvent> events = Read(*file);
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(events[2].step, -1);
  EXPECT_EQ(events[5].step, int64_t{1} << 40);
  for (size_t i = 2; i < events.size(); ++i) {
    ASSERT_EQ(events[i].scalars.size(), std::size(values));
    for (size_t k = 0; k < std::size(values); ++k) {
      EXPECT_EQ(events[i].scalars[k].tag, "a/b");
      EXPECT_EQ(std::bit_cast<uint32_t>(events[i].scalars[k].value),
                std::bit_cast<uint32_t>(static_cast<float>(values[k])))
          << values[k];
    }
  }
}

TEST_F(EventFileTest, WritesNanAsItIs) {
  const auto file = Open();
  const EventScalar scalar = {"x", NAN};
  file->WriteScalars(0, {scalar});
  EXPECT_TRUE(std::isnan(Read(*file).at(2).scalars.at(0).value));
}

TEST_F(EventFileTest, WritesTextForTheTextPlugin) {
  const auto file = Open();
  const std::string text = "| a |\n" + std::string(100000, 'x') + "\xc3\xa9";
  file->WriteText(3, "run/settings", text);
  file->WriteText(3, "empty", "");
  const std::vector<ReadEvent> events = Read(*file);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[2].step, 3);
  const auto& [tag, value] = events[2].tensors.at(0);
  EXPECT_EQ(tag, "run/settings");
  const WireMessage tensor = WireMessage::Parse(value.Bytes(8));
  EXPECT_EQ(tensor.Number(1), 7u);  // a string
  EXPECT_EQ(tensor.Bytes(2), "");   // a shape without dimensions
  EXPECT_EQ(tensor.Bytes(8), text);
  const WireMessage metadata = WireMessage::Parse(value.Bytes(9));
  EXPECT_EQ(metadata.Number(4), 2u);  // data class: tensor
  EXPECT_EQ(WireMessage::Parse(metadata.Bytes(1)).Bytes(1), "text");
  EXPECT_EQ(WireMessage::Parse(events[3].tensors.at(0).second.Bytes(8)).Bytes(8), "");
}

TEST_F(EventFileTest, NamesAreInTheOrderOfRuns) {
  std::vector<std::string> names;
  for (auto clock : {Noon, Noon, LongAgo, Noon}) names.push_back(NameOf(*Open(0, clock)));
  EXPECT_EQ(names[0].rfind("events.out.tfevents.1790000000.", 0), 0u) << names[0];
  EXPECT_NE(names[0].find("." + std::to_string(getpid()) + ".0"), std::string::npos) << names[0];
  EXPECT_EQ(std::count(names[0].begin(), names[0].end(), '.'), 6);
  EXPECT_EQ(names[2].rfind("events.out.tfevents.1790000002.", 0), 0u) << names[2];
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
}

TEST_F(EventFileTest, OtherFilesDoNotMatter) {
  for (const char* name :
       {"events.out.tfevents.", "events.out.tfevents.x.h", "events.out.tfevents.99999999999999999999.h",
        "events.out.tfevents.10000000000.h", "events.out.tfevents.1800000000", "events.out.tfevents.-5.h",
        "old.events.out.tfevents.1800000000.h", "rank0.log"})
    folder_.Write(name, "x");
  EXPECT_EQ(NameOf(*Open()).rfind("events.out.tfevents.1790000000.", 0), 0u);
}

TEST_F(EventFileTest, TenDigitsAreTheMost) {
  EXPECT_EQ(NameOf(*Open(0, BeyondTenDigits)).rfind("events.out.tfevents.9999999999.", 0), 0u);
  const auto second = Open();  // the number at the end tells them apart
  EXPECT_EQ(NameOf(*second).rfind("events.out.tfevents.9999999999.", 0), 0u);
  EXPECT_EQ(NameOf(*second).substr(NameOf(*second).size() - 2), ".1");
}

TEST_F(EventFileTest, SaysWhereItCannotWrite) {
  const auto file = EventFile::Open(folder_.Path("absent"));
  EXPECT_EQ(ExitStatus(file.status()), kExitIo);
  EXPECT_NE(file.status().message().find("absent"), std::string::npos);
  EXPECT_EQ(ExitStatus(EventFile::Check(folder_.Path("absent"), 1)), kExitIo);
  EXPECT_EQ(ExitStatus(EventFile::Check(folder_.Write("file", "x"), 1)), kExitIo);
  EXPECT_TRUE(EventFile::Check(folder_.Path("."), 4096).ok());
  EXPECT_EQ(ExitStatus(EventFile::Check(folder_.Path("."), uint64_t{1} << 62)), kExitIo);
  EXPECT_EQ(folder_.NumFiles(), 1u);
}

// A limit on the size of files stands for a full disk: the write in which it is reached is a short one.
TEST_F(EventFileTest, EndsWithAWholeRecordWhenTheDiskIsFull) {
  const auto file = Open();
  const EventScalar scalar = {"train/loss", 1};
  file->WriteScalars(0, {scalar});
  const auto whole = std::filesystem::file_size(file->path());
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit tight = {.rlim_cur = whole + 7, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  file->WriteScalars(1, {scalar});
  setrlimit(RLIMIT_FSIZE, &before);
  file->WriteScalars(2, {scalar});
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(ExitStatus(file->status()), kExitIo);
  EXPECT_NE(file->status().message().find(file->path()), std::string::npos) << file->status();
  EXPECT_EQ(std::filesystem::file_size(file->path()), whole);
  EXPECT_EQ(Read(*file).size(), 3u);
}

// Three runs in one folder: the first was killed in the middle of a record, the second begins at a step that
// the first has computed, the third at one of the second. test/interop names a folder and looks at it with
// TensorBoard itself.
TEST_F(EventFileTest, RunsThatGoOn) {
  const char* const given = std::getenv("FT_EVENTS_FOLDER");
  const std::string folder = given != nullptr ? given : folder_.Path(".");
  const auto write = [&](int run, int64_t begin, int64_t end) {
    const auto file = EventFile::Open(folder, {.first_step = begin});
    EXPECT_TRUE(file.ok());
    (*file)->WriteText(begin, "run/settings", "run " + std::to_string(run));
    for (int64_t step = begin; step < end; ++step) {
      const EventScalar scalars[] = {{"train/loss", 100.0 * run + step}, {"eval/loss", 100.0 * run + step}};
      (*file)->WriteScalars(step, absl::MakeConstSpan(scalars, step % 4 == 3 ? 2 : 1));
    }
    return (*file)->path();
  };
  const std::string first = write(1, 0, 10);
  EXPECT_EQ(ReadEvents(TempFolder::Read(first)).size(), 13u);
  std::filesystem::resize_file(first, std::filesystem::file_size(first) - 5);
  EXPECT_EQ(ReadEvents(TempFolder::Read(write(2, 5, 7))).size(), 5u);
  EXPECT_EQ(ReadEvents(TempFolder::Read(write(3, 6, 12))).at(1).step, 6);
}

}  // namespace
}  // namespace ft
