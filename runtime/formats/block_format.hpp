#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace pascaline {

/// Formats that hold a row's values in blocks, as GGUF files store them (docs/formats.md has each one's exact
/// definition; the layouts are those of ggml's `block_q8_0`, `block_q4_0`, …).
enum class BlockFormat : std::uint8_t { q8_0, q4_0, q4_1, q4_k, q6_k };

/// What is known of a format beside its layout.
struct BlockFormatInfo {
  BlockFormat format;
  std::string_view name;    ///< as options and messages write it
  std::int64_t values;      ///< of a block
  std::size_t block_bytes;  ///< of a block
};

/// All of them, in the order of the enumeration.
[[nodiscard]] std::span<const BlockFormatInfo> block_formats() noexcept;
[[nodiscard]] const BlockFormatInfo& info_of(BlockFormat format) noexcept;

/// The float32 values of whole blocks, computed in float32 in the order of operations that docs/formats.md gives, so
/// that they are bit for bit those of ggml. `blocks` need not be aligned. Throws Error if `values` is not as long as
/// that many blocks are, or `blocks` is no whole number of them.
void dequantize(BlockFormat format, std::span<const std::byte> blocks, std::span<float> values);

/// Values that a format cannot hold.
struct UnfitBlock {
  std::size_t value = 0;      ///< the first value that cannot be held, or the first of a block whose scale cannot
  std::string_view reason{};  ///< why, for a message: "is not finite", …
};

/// Blocks with a small sum of squared errors: of the scales that are tried the best, among them those of ggml's own
/// reference quantizers for q8_0, q4_0 and q4_1, so that the error is never above theirs. Stops at the first block that
/// cannot be held: a value that is not finite, or a scale beyond float16. Throws Error as `dequantize`.
[[nodiscard]] std::optional<UnfitBlock> quantize(BlockFormat format, std::span<const float> values,
                                                 std::span<std::byte> blocks);

}  // namespace pascaline
