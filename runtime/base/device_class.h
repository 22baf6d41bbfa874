// Kinds of devices that a plan knows apart: their kernels want different scratch.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace ft {

enum class DeviceClass : uint8_t { kCpu = 0, kCuda = 1 };

inline constexpr std::array kDeviceClasses = {DeviceClass::kCpu, DeviceClass::kCuda};

// As --device takes it.
constexpr std::string_view Name(DeviceClass device) { return device == DeviceClass::kCuda ? "cuda" : "cpu"; }

}  // namespace ft
