#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace pascaline {

/// Most bytes of a file of recorded spaces, unpacked.
inline constexpr std::size_t kMaxRecordedBytes = std::size_t{512} << 20;

/// Whether these bytes begin as gzip's do.
[[nodiscard]] bool is_gzip(std::string_view bytes) noexcept;

/// Contents of a gzip file of one or more members; throws SpaceError naming `file` if they are damaged, cut off, or
/// more than `most` bytes.
[[nodiscard]] std::string unpack_gzip(std::string_view packed, const std::string& file,
                                      std::size_t most = kMaxRecordedBytes);

/// A file's contents, unpacked if they are gzip; throws SpaceError as `unpack_gzip`, Error if it cannot be read.
[[nodiscard]] std::string read_plain_or_gzip(const std::filesystem::path& file);

}  // namespace pascaline
