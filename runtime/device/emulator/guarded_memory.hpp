#pragma once

#include <cstddef>

namespace pascaline {

/// Lays a fixed pattern over the guard bands of an allocation that begins at `base` with Device::kGuardBytes and
/// then holds `bytes` of data. Under AddressSanitizer the bands, to the byte, are forbidden to instrumented code.
void lay_guards(void* base, std::size_t bytes) noexcept;

/// Whether both bands are as they were laid; lays them again.
[[nodiscard]] bool check_guards(void* base, std::size_t bytes) noexcept;

/// Size of the whole allocation for that much data, a multiple of its alignment; 0 if there is no such size.
[[nodiscard]] std::size_t guarded_bytes(std::size_t bytes) noexcept;

/// Alignment of the allocation and of its data.
inline constexpr std::size_t kDataAlignment = 256;

}  // namespace pascaline
