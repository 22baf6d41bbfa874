#include "runtime/backends/cuda/device/numa_node.h"

#include <filesystem>

#include "gtest/gtest.h"
#include "runtime/base/testing/temp_folder.h"

namespace ft::cuda {
namespace {

TEST(NumaNodeTest, IsWhatTheSystemSays) {
  const TempFolder folder;
  const auto write = [&](const std::string& address, const std::string& text) {
    const std::string of = "sys/bus/pci/devices/" + address;
    std::filesystem::create_directories(folder.Path(of));
    folder.Write(of + "/numa_node", text);
  };
  write("0000:3b:00.0", "1\n");
  write("0000:5c:00.0", "-1\n");
  write("0000:5d:00.0", "");
  EXPECT_EQ(NumaNodeOf("0000:3B:00.0", folder.Path("")), 1);
  for (const char* unknown : {"0000:5C:00.0", "0000:5D:00.0", "0000:5E:00.0", ""})
    EXPECT_EQ(NumaNodeOf(unknown, folder.Path("")), std::nullopt) << unknown;
}

}  // namespace
}  // namespace ft::cuda
