#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pascaline {

/// Bytes of "1.5GiB", "800M", "2GB" or "4096B": KiB, MiB, GiB and TiB, or only K, M, G and T, are powers of 1024, kB,
/// MB, GB and TB of 1000.
/// Throws Error if there is no unit, if it is no positive number, or if it does not fit 63 bits.
[[nodiscard]] std::uint64_t parse_byte_size(std::string_view text);
/// "1.50 GiB", "12.3 MiB", "4.1 KiB" or "12 B".
[[nodiscard]] std::string shown_bytes(std::uint64_t bytes);

}  // namespace pascaline
