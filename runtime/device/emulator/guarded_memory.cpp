#include "runtime/device/emulator/guarded_memory.hpp"

#include <array>
#include <cstdint>
#include <limits>

#include "runtime/device/device.hpp"
#include "runtime/device/emulator/sanitizer_hooks.hpp"

namespace pascaline {
namespace {

// A signalling NaN as float: a value read from a guard band shows in a result, and a result computed from one, being
// quiet, does not look like the band where it is written back to it.
constexpr std::array<std::uint8_t, 4> kPattern{0x5a, 0xc5, 0xa5, 0xff};
constexpr std::size_t kGuard = Device::kGuardBytes;

struct Bands {
  std::uint8_t* front;
  std::uint8_t* back;
  std::size_t back_bytes;
};

Bands bands_of(void* base, std::size_t bytes) noexcept {
  auto* front = static_cast<std::uint8_t*>(base);
  return {front, front + kGuard + bytes, guarded_bytes(bytes) - kGuard - bytes};
}

void fill_band(std::uint8_t* band, std::size_t bytes) noexcept {
  for (std::size_t i = 0; i < bytes; ++i) {
    band[i] = kPattern[i % kPattern.size()];
  }
}

bool band_intact(const std::uint8_t* band, std::size_t bytes) noexcept {
  unsigned difference = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    difference |= static_cast<unsigned>(band[i] ^ kPattern[i % kPattern.size()]);
  }
  return difference == 0;
}

}  // namespace

std::size_t guarded_bytes(std::size_t bytes) noexcept {
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) {
    return 0;
  }
  return 2 * kGuard + (bytes + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
}

void lay_guards(void* base, std::size_t bytes) noexcept {
  const Bands bands = bands_of(base, bytes);
  fill_band(bands.front, kGuard);
  fill_band(bands.back, bands.back_bytes);
  if (sanitizer_hooks().present()) {
    sanitizer_hooks().poison(bands.front, kGuard);
    sanitizer_hooks().poison(bands.back, bands.back_bytes);
  }
}

bool check_guards(void* base, std::size_t bytes) noexcept {
  const Bands bands = bands_of(base, bytes);
  if (sanitizer_hooks().present()) {
    sanitizer_hooks().unpoison(base, guarded_bytes(bytes));
  }
  const bool intact = band_intact(bands.front, kGuard) && band_intact(bands.back, bands.back_bytes);
  lay_guards(base, bytes);
  return intact;
}

}  // namespace pascaline
