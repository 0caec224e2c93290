#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

namespace pascaline {

inline constexpr std::size_t kLargestSmallBlock = std::size_t{1} << 20;
inline constexpr std::size_t kBigBlockStep = std::size_t{2} << 20;  // a page of device memory
inline constexpr std::size_t kLargestSlab = std::size_t{2} << 20;
inline constexpr std::size_t kBlocksPerSlab = 64;

/// Which blocks serve a request.
struct SizeClass {
  std::size_t block_bytes = 0;       ///< what is cut for it
  std::size_t most_bytes = 0;        ///< a free block of that size is still taken
  std::size_t blocks_per_chunk = 0;  ///< how many blocks one allocation of the device gives
};

/// Small requests, up to 1 MiB, are rounded up to the next of four classes a doubling (up to 1024 bytes: to the next
/// multiple of 256; above at most a fifth of a block is lost), and their blocks cut from slabs of 64, or as many as 2
/// MiB hold. Larger ones are rounded up to whole pages of 2 MiB, get an allocation each, and also take a free block
/// that is up to a quarter larger. `bytes` is at most 2^62.
[[nodiscard]] constexpr SizeClass size_class_of(std::size_t bytes) {
  if (bytes > kLargestSmallBlock) {
    const std::size_t block = (bytes + kBigBlockStep - 1) / kBigBlockStep * kBigBlockStep;
    return {block, block + block / 4, 1};
  }
  constexpr std::size_t kFinest = 256;
  const std::size_t step = std::max(kFinest, std::bit_floor(std::max<std::size_t>(bytes, 2) - 1) / 4);
  const std::size_t block = std::max<std::size_t>(1, (bytes + step - 1) / step) * step;
  return {block, block, std::min(kBlocksPerSlab, kLargestSlab / block)};
}

}  // namespace pascaline
