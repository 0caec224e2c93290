#pragma once

#include <filesystem>
#include <string_view>

namespace pascaline {

/// The file that a user means who pasted its name where no shell reads it, as terminals and file managers write names:
/// in double or single quotes, with backslashes before spaces, from `~/` on, or as a `file://` URL. A file that has
/// exactly the given name is meant before any other.
[[nodiscard]] std::filesystem::path pasted_path(std::string_view text);

}  // namespace pascaline
