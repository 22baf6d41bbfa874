#include "runtime/base/host_pages.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "gtest/gtest.h"
#include "runtime/base/resident_memory.h"

namespace ft {
namespace {

constexpr uint64_t kBytes = (uint64_t{130} << 20) + 5;

TEST(HostPagesTest, AreZeroedAndThereFromTheBeginning) {
  for (const HostPages::Wish& wish : {HostPages::Wish{}, HostPages::Wish{.numa_node = 0, .threads = 3},
                                      HostPages::Wish{.numa_node = 1000, .threads = 100}}) {
    const uint64_t before = ResidentMemoryOfProcess()->now;
    {
      const auto pages = HostPages::Create(kBytes, wish);
      ASSERT_TRUE(pages.ok()) << pages.status();
      EXPECT_EQ((*pages)->bytes(), kBytes);
      EXPECT_FALSE((*pages)->is_on_node() && wish.numa_node != 0) << "node " << wish.numa_node;
      EXPECT_GE(ResidentMemoryOfProcess()->now, before + kBytes / 10 * 9);
      auto* const data = static_cast<std::byte*>((*pages)->data());
      EXPECT_TRUE(std::all_of(data, data + kBytes, [](std::byte one) { return one == std::byte{0}; }));
      data[0] = data[kBytes - 1] = std::byte{7};
    }
    EXPECT_LE(ResidentMemoryOfProcess()->now, before + kBytes / 10);
  }
}

TEST(HostPagesTest, WhatDoesNotFitIsRefusedBeforeItIsFilled) {
  const absl::Status status = HostPages::Create(uint64_t{1} << 60, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_NE(status.message().find("has room for"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace ft
