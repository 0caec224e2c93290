#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace pascaline {

/// From now on this process is taken for a program that is installed as `prefix`/bin/pascaline, for those that are not:
/// programs which load the library. Call it before anything else.
void set_installation_prefix(const std::filesystem::path& prefix);

/// Prefix that the program is installed under: the one set, else the folder over that of the program's; nothing if that
/// is not known.
[[nodiscard]] std::optional<std::filesystem::path> installation_prefix();

/// Folder with the data of that name (`kernel_templates`, `search_spaces`, `shim`): under
/// $PASCALINE_DATA_DIR, else in `share/pascaline` of `installation_prefix`, else in the source tree it was
/// built from. Never in the working directory. Throws Error naming the places tried.
[[nodiscard]] std::filesystem::path data_folder(std::string_view name);

/// Folder for compiled kernels: $PASCALINE_CACHE_DIR, else $XDG_CACHE_HOME/pascaline, else ~/.cache/pascaline. The last
/// two count with full paths only; ~ is $HOME, else what the password database says. Throws Error without any of them.
[[nodiscard]] std::filesystem::path cache_folder();

/// Default database: $PASCALINE_DB, else $XDG_DATA_HOME/pascaline/tuned.db, else ~/.local/share/pascaline/tuned.db, as
/// in `cache_folder`.
[[nodiscard]] std::filesystem::path default_database();

/// Whole file as bytes; throws Error naming it, also if it has more than `most` bytes (a device may have no end) or is
/// a named pipe, which would be waited for; a shell's `<(command)` is read.
[[nodiscard]] std::string read_file(const std::filesystem::path& file, std::size_t most = std::string::npos);

/// Writes beside the target and renames over it, so that readers see the old or the new file, never half of one. A
/// symbolic link stays one, to the new file; what is no regular file, such as /dev/stdout, is written to as it is.
/// Throws Error naming the file and the cause (disk full among them).
void write_file_atomically(const std::filesystem::path& file, std::string_view bytes);

/// The same for files in a folder that anyone may have made: whatever has that name, such as a symbolic link to another
/// file, is replaced and never written through.
void replace_file(const std::filesystem::path& file, std::string_view bytes);

}  // namespace pascaline
