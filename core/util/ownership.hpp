#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>

namespace pascaline {

/// Why others than the user and root can change a file or folder: "user 1000 owns it", "everybody can write it" and the
/// like. Empty if they cannot.
[[nodiscard]] std::string why_foreign(const struct ::stat& status);

/// The same for what lies beside a program: whoever can change the program `owner` owns may own it, too, and its group
/// may write it, as that of a source tree often may. A file that is not there is nobody's.
[[nodiscard]] std::string why_foreign(const std::filesystem::path& file, uid_t owner);

}  // namespace pascaline
