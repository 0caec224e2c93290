#pragma once

#include <cstdint>

namespace pascaline {

/// NVML's clocks-throttle (event) reasons that say a card slowed down for its power: SwPowerCap, HwPowerBrakeSlowdown.
inline constexpr std::uint64_t kPowerThrottleBits = 0x4 | 0x80;
/// HwSlowdown, which says that a card slowed down, for its temperature or because its power supply asserts a brake.
inline constexpr std::uint64_t kHwSlowdownBit = 0x8;
inline constexpr std::uint64_t kHwPowerBrakeBit = 0x80;
inline constexpr std::uint64_t kHwThermalBit = 0x40;
/// … and for its temperature: HwSlowdown, SwThermalSlowdown, HwThermalSlowdown.
inline constexpr std::uint64_t kThermalThrottleBits = 0x8 | 0x20 | 0x40;

}  // namespace pascaline
