#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace pascaline {

/// Whether these bytes are a Git LFS pointer, which stands where a clone without Git LFS has not the file itself.
[[nodiscard]] bool is_lfs_pointer(std::string_view bytes) noexcept;

/// What a message says of such a file, after its name.
inline constexpr std::string_view kLfsPointer =
    "this is a Git LFS pointer, not the file itself; run `git lfs pull` in its folder, or download the file again";

/// A text of other programs as UTF-8 without a byte order mark: UTF-16 with such a mark is converted, and each run of
/// bytes that is no UTF-8 becomes U+FFFD. Throws SpaceError naming `file` for a Git LFS pointer.
[[nodiscard]] std::string foreign_text(std::string bytes, const std::string& file);

/// `foreign_text` of a file; throws as `read_space_file` does, too.
[[nodiscard]] std::string read_foreign_text(const std::filesystem::path& file);

}  // namespace pascaline
